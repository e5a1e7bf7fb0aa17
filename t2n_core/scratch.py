"""Temporary folders that do not outlive their process for long: the next process removes a killed one's."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from filelock import FileLock, Timeout

_PREFIX = "t2n-"
_NAME = re.compile(rf"{_PREFIX}[0-9a-f]{{16}}")
_LOCK = ".lock"
_IN_MEMORY = Path("/dev/shm")


class ScratchFolder:
    """A temporary folder; a lock beside it, which the system releases when the process ends, marks it as in use."""

    def __init__(self) -> None:
        """Create the folder. Raises OSError."""
        _sweep(Path(tempfile.gettempdir()))
        while True:
            self.path = Path(f"{scratch_prefix()}{os.urandom(8).hex()}")
            self._lock = FileLock(_lock_of(self.path), thread_local=False)
            with suppress(Timeout):  # another process is sweeping, and took the lock for an abandoned one
                self._lock.acquire(timeout=0)
                self.path.mkdir(mode=0o700)
                if _lock_of(self.path).exists():
                    return
                self.remove()

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        _remove(self.path, self._lock)


def scratch_prefix() -> str:
    """Return the beginning of the paths of all temporary folders."""
    return os.path.join(tempfile.gettempdir(), _PREFIX)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a temporary folder, and remove it when the block exits. Raises OSError."""
    scratch = ScratchFolder()
    try:
        yield scratch.path
    finally:
        scratch.remove()


def home_in_memory(size: int) -> Path | None:
    """Return a folder in memory with room for `size` bytes; None if there is none, as in small containers."""
    with suppress(OSError):
        if _IN_MEMORY.is_dir() and os.access(_IN_MEMORY, os.W_OK) and shutil.disk_usage(_IN_MEMORY).free >= size:
            return _IN_MEMORY
    return None


@cache
def _sweep(home: Path) -> None:
    """Remove the folders of this user's dead processes, and locks without a folder."""
    user = os.getuid() if hasattr(os, "getuid") else None
    for name in {path.name.removesuffix(_LOCK) for path in home.glob(f"{_PREFIX}*")}:
        path = home / name
        if not _NAME.fullmatch(name):
            continue
        with suppress(OSError, Timeout):
            status = (path if os.path.lexists(path) else _lock_of(path)).lstat()
            if user in (None, status.st_uid) and not path.is_symlink() and (path.is_dir() or not path.exists()):
                lock = FileLock(_lock_of(path), thread_local=False)
                lock.acquire(timeout=0)
                _remove(path, lock)


def _remove(path: Path, lock: FileLock) -> None:
    shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):
        _lock_of(path).unlink()
    lock.release()


def _lock_of(path: Path) -> Path:
    return path.with_name(f"{path.name}{_LOCK}")
