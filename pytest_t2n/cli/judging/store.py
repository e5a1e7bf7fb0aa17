"""A store of results by key, in a folder or under a URL of fsspec; several runs may read and write it at once."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from t2n_core.errors import T2NError
from t2n_core.extras import importing
from t2n_core.files import write_whole
from t2n_core.foreign import ForeignFileError, read_file

_MOST = 16 << 20
"""Most bytes of a result; a larger one is neither written nor read."""
_WRITERS = 4
_WAITING = 1_000
"""Most results that wait to be written; beyond that the run waits for them."""


class ResultStore:
    """Results in files `ab/abcd….json`. A file that cannot be read or written only costs time."""

    def __init__(self, url: str, warn: Callable[[str], None]) -> None:
        """Open a folder, or a URL. Raises T2NError for an unsupported URL."""
        self._warn = warn
        self._warned: set[str] = set()
        self._folder, self._remote, self._root = None, None, ""
        if "://" in url:
            self._remote, self._root = _open(url)
        else:
            self._folder = Path(url)
        self._pool = ThreadPoolExecutor(_WRITERS, thread_name_prefix="t2n reuse")
        self._writing: list[Future[None]] = []

    def __enter__(self) -> ResultStore:
        return self

    def __exit__(self, kind: object, *problem: object) -> None:
        """Wait until all results are written; after an error only for those in progress."""
        self._pool.shutdown(cancel_futures=kind is not None)

    def get(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the existing results."""
        if self._folder is not None:
            return {key: data for key in keys if (data := self._read(self._folder / _name(key))) is not None}
        assert self._remote is not None
        paths = [f"{self._root}/{_name(key)}" for key in keys]
        try:
            answers = self._remote.cat_ranges(paths, 0, _MOST + 1, on_error="return")
        except Exception as exc:
            self._tell("read", exc)
            return {}
        for data in answers:
            if isinstance(data, Exception) and not isinstance(data, FileNotFoundError):
                self._tell("read", data)
        return {
            key: data for key, data in zip(keys, answers, strict=True) if isinstance(data, bytes) and len(data) <= _MOST
        }

    def put(self, key: str, data: bytes) -> None:
        """Write a result in the background."""
        if len(data) > _MOST or "write" in self._warned:
            return
        self._writing = [future for future in self._writing if not future.done()]
        if len(self._writing) >= _WAITING:
            self._writing[0].result()
        self._writing.append(self._pool.submit(self._write, key, data))

    def _read(self, path: Path) -> bytes | None:
        try:
            return read_file(path, _MOST)
        except FileNotFoundError:
            return None
        except (OSError, ForeignFileError) as exc:
            self._tell("read", exc)
            return None

    def _write(self, key: str, data: bytes) -> None:
        try:
            if self._folder is not None:
                write_whole(self._folder / _name(key), data)
                return
            assert self._remote is not None
            path = f"{self._root}/{_name(key)}"
            draft = f"{path}.{secrets.token_hex(8)}.part"
            with suppress(Exception):  # stores without folders need none
                self._remote.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._remote.pipe_file(draft, data)
            self._remote.mv(draft, path)
        except Exception as exc:
            self._tell("write", exc)

    def _tell(self, operation: str, error: Exception) -> None:
        """Warn once of each kind of error."""
        if operation not in self._warned:
            self._warned.add(operation)
            self._warn(f"--reuse: results cannot be {'read' if operation == 'read' else 'written'}: {error}"[:300])


def _open(url: str) -> tuple[Any, str]:
    with importing("--reuse with a URL"):
        from fsspec.core import url_to_fs
    try:
        filesystem, root = url_to_fs(url)
    except (ImportError, ValueError) as exc:
        raise T2NError(f"--reuse={url}: {exc}") from None
    return filesystem, root.rstrip("/")


def _name(key: str) -> str:
    return f"{key[:2]}/{key}.json"
