"""The text of an archive's graph, read without unpacking the rest, from any exporter."""

from __future__ import annotations

import gzip
import tarfile
import time
import zlib
from pathlib import Path, PurePosixPath
from typing import IO, Final

from t2n_core.foreign import ForeignFileError, open_file, read_file

GRAPH_FILE: Final = "graph.nnef"
_MOST_TEXT: Final = 64 << 20
_MOST_SECONDS: Final = 20.0
"""Seconds that unpacking may take before the graph is reached; it comes first in archives of this package."""
_GZIP: Final = b"\x1f\x8b"
_CHUNK: Final = 1 << 20


def read_graph(archive: Path) -> bytes:
    """Return the content of `graph.nnef` of a directory, a tar or a gzipped tar. Raises ForeignFileError, OSError."""
    if archive.is_dir():
        return read_file(archive / GRAPH_FILE, _MOST_TEXT)
    with open_file(archive) as file:
        packed = file.read(len(_GZIP)) == _GZIP
        file.seek(0)
        try:
            if packed:
                with gzip.GzipFile(fileobj=file) as unpacked:
                    return _graph_of(unpacked)
            return _graph_of(file)
        except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, ForeignFileError) as exc:
            raise ForeignFileError(f"{archive.name} is not an archive: {exc}") from None


def _graph_of(stream: IO[bytes] | gzip.GzipFile) -> bytes:
    give_up = time.monotonic() + _MOST_SECONDS
    while any(block := stream.read(tarfile.BLOCKSIZE)):
        entry = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        size = entry.size if entry.size >= 0 else 0
        if entry.isreg() and PurePosixPath(entry.name).name == GRAPH_FILE:
            if size > _MOST_TEXT:
                raise ForeignFileError(f"its graph has {size} bytes, more than {_MOST_TEXT}")
            text = stream.read(size)
            if len(text) < size:
                raise ForeignFileError("it ends inside its graph")
            return text
        _skip(stream, -(-size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE, give_up)
    raise ForeignFileError(f"it has no {GRAPH_FILE}")


def _skip(stream: IO[bytes] | gzip.GzipFile, size: int, give_up: float) -> None:
    if not isinstance(stream, gzip.GzipFile):
        stream.seek(size, 1)
        return
    while size > 0 and (got := len(stream.read(min(size, _CHUNK)))):
        size -= got
        if time.monotonic() > give_up:
            raise ForeignFileError(f"its graph is not within the first {_MOST_SECONDS:g} seconds of unpacking")
