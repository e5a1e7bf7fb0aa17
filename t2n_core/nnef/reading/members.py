"""The files of an untrusted archive: read with limits on their names, kinds, number and size."""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Final

from t2n_core.errors import InputError
from t2n_core.foreign import ForeignFileError, check_name, read_file
from t2n_core.nnef.reading.file_kind import is_onnx
from t2n_core.nnef.reading.graph_file import GRAPH_FILE

DAT: Final = ".dat"
QUANT_FILE: Final = "graph.quant"
_READ: Final = (GRAPH_FILE, QUANT_FILE)
_MOST_FILES: Final = 100_000
_MOST_BYTES: Final = 1 << 28
"""Unpacked bytes that any archive may have; more are allowed only in proportion to its file size."""
_MOST_PACKED: Final = 20
"""Unpacked bytes for each packed one: weights hardly shrink, zeros do by a factor of a thousand."""


def read_members(archive: Path) -> dict[str, bytes]:
    """Return graph, tensors and quantisation of an archive, a directory, a tar or a gzipped tar, by their files' names.

    Other files are ignored. Raises InputError if it is not an archive, for a name that leads out of the archive, a link
    or a pipe, and for more files or bytes than an archive of weights has.
    """
    with archive_errors(archive):
        if archive.is_dir():
            return dict(_of_folder(archive, _READ))
        return dict(_of_tar(archive, max(_MOST_BYTES, _MOST_PACKED * archive.stat().st_size), _READ))


def unpack_members(archive: Path, folder: Path, *, most: int) -> None:
    """Write the graph and the tensors of a tar into a folder, of at most `most` bytes. Raises InputError."""
    with archive_errors(archive):
        for name, data in _of_tar(archive, most, (GRAPH_FILE,)):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


@contextmanager
def archive_errors(archive: Path) -> Iterator[None]:
    """Raise InputError for an error of the system or of a tar while an archive is read."""
    try:
        yield
    except (OSError, tarfile.TarError, EOFError, zlib.error, ForeignFileError) as wrong:
        if is_onnx(archive):
            raise InputError(
                f"{archive} is an ONNX model, and this needs an archive", hint=f"t2n convert {archive.name} writes one"
            ) from wrong
        raise InputError(f"{archive} is not an archive: {wrong}") from wrong


def _is_wanted(name: str, files: Collection[str]) -> bool:
    path = PurePosixPath(name)
    return path.name in files or path.suffix == DAT


def _of_folder(folder: Path, files: Collection[str]) -> Iterator[tuple[str, bytes]]:
    for number, path in enumerate(sorted(folder.rglob("*"))):
        if number >= _MOST_FILES:
            raise ForeignFileError(f"it holds more than {_MOST_FILES} files")
        name = path.relative_to(folder).as_posix()
        if not path.is_dir() and _is_wanted(name, files):
            if path.is_symlink():
                raise ForeignFileError(f"{name!r} is not a file")
            yield name, read_file(path, path.stat().st_size)


def _of_tar(archive: Path, left: int, files: Collection[str]) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(archive) as tar:
        for number, member in enumerate(tar):
            name = member.name.removeprefix("./")
            left -= member.size
            if number >= _MOST_FILES or left < 0:
                raise ForeignFileError("it holds more files, or more bytes unpacked, than an archive of weights")
            if member.isdir() or not _is_wanted(name, files):
                continue
            check_name(name)
            stream = tar.extractfile(member) if member.isreg() else None
            if stream is None:
                raise ForeignFileError(f"{name!r} is not a file")
            yield name, stream.read()
