"""Writer of archives: a graph with its weights, or weights alone, as a directory, a tar file or a gzipped tar file.

An archive is written under a temporary name and renamed when it is complete, so that its final name never holds a
partial archive. Its bytes depend on the graph alone, not on time, user, host or the order of a dictionary.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re
import shutil
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Final, NamedTuple

from isal import igzip_threaded

from t2n_core.errors import Origin, WriteError
from t2n_core.files import replace_with
from t2n_core.nnef import dat
from t2n_core.nnef.dat import WeightSource
from t2n_core.nnef.graph import Graph
from t2n_core.nnef.reading.graph_file import GRAPH_FILE
from t2n_core.nnef.spec import Spec
from t2n_core.nnef.writer import graph_text

_TAR_SUFFIXES: Final = (".tar",)
_GZIP_SUFFIXES: Final = (".tgz", ".tar.gz")
_OTHER_FILES: Final = (".nnef", ".onnx", ".pt", ".pth", ".zip", ".gz", ".xz", ".bz2", ".zst", ".dat", ".7z")
"""Suffixes of files that this module does not write; any other name means a directory."""
_LABEL: Final = re.compile(r"[A-Za-z0-9_\-][A-Za-z0-9_\-.]*(/[A-Za-z0-9_\-][A-Za-z0-9_\-.]*)*")
"""tract skips every file whose path has a component that starts with a dot."""
_COPY: Final = 1 << 20
_LEVELS: Final = range(4)
_LEVEL: Final = 2
"""Compression level: on weights, which hardly shrink, as small as zlib's level 6 and twenty times as fast."""
_THREADS: Final = 8
_BLOCK: Final = 1 << 18
"""Bytes that a thread packs at once; a few of them are in memory for each thread."""


def write_archive(graph: Graph, path: str | os.PathLike[str], *, spec: Spec, compression: int | None = None) -> Path:
    """Write `graph` and return the path of the archive. Weights are read in pieces, each label is stored once.

    The name decides the format: `.tgz` and `.tar.gz` (also `.nnef.tgz`) a gzipped tar with level `compression`
    (0 to 3, Intel's ISA-L levels; default 2), `.tar` a plain one, everything else a directory. A directory that
    exists is replaced if it is empty or an earlier export.

    Raises WriteError; `path` then keeps its previous content.
    """
    content = graph_text(graph, spec=spec).encode()
    weights = collect_weights(graph)
    return _write({GRAPH_FILE: _File(len(content), lambda: [content]), **_files(weights)}, Path(path), compression)


def write_tensors(
    weights: Mapping[str, WeightSource], path: str | os.PathLike[str], *, compression: int | None = None
) -> Path:
    """Write tensors without a graph, each under its label, in the formats of `write_archive`. Raises WriteError."""
    for label in weights:
        _check_label(label, None)
    return _write(_files({label: weights[label] for label in sorted(weights)}), Path(path), compression)


def write_files(files: Mapping[str, Path], path: str | os.PathLike[str], *, compression: int | None = None) -> Path:
    """Write an archive of existing files, in their order. Raises WriteError."""
    return _write({name: _file_of(file) for name, file in files.items()}, Path(path), compression)


class _File(NamedTuple):
    """A file of an archive."""

    size: int
    pieces: Callable[[], Iterable[bytes | memoryview]]


def _files(weights: Mapping[str, WeightSource]) -> dict[str, _File]:
    return {
        f"{label}.dat": _File(dat.HEADER_SIZE + dat.stored_size(source), functools.partial(dat.pieces, source))
        for label, source in weights.items()
    }


def _file_of(path: Path) -> _File:
    def pieces() -> Iterator[bytes]:
        with path.open("rb") as stream:
            while piece := stream.read(_COPY):
                yield piece

    return _File(path.stat().st_size, pieces)


def check_archive_name(target: Path) -> None:
    """Raise WriteError if no archive can have this name, or there is no folder for it."""
    name = target.name.lower()
    if name.endswith(_OTHER_FILES) and not name.endswith(_TAR_SUFFIXES + _GZIP_SUFFIXES):
        suffix = "`, `".join(_TAR_SUFFIXES + _GZIP_SUFFIXES)
        raise WriteError(f"{target}: an archive ends in `{suffix}`, and a directory has no file suffix")
    if not target.parent.exists():
        raise WriteError(f"{target} cannot be written", hint=_hint(target))


def _write(files: Mapping[str, _File], target: Path, compression: int | None) -> Path:
    name = target.name.lower()
    check_archive_name(target)
    if not name.endswith(_GZIP_SUFFIXES) and compression is not None:
        raise WriteError(f"`compression` is for gzipped archives: {target.name!r} does not name one")
    if compression is not None and compression not in _LEVELS:
        raise WriteError(
            f"compression level {compression} is not within {_LEVELS.start} to {_LEVELS.stop - 1}",
            hint=f"write {_LEVELS.stop - 1} in place of gzip's higher levels, up to 9: weights hardly shrink further",
        )
    try:
        if name.endswith(_TAR_SUFFIXES + _GZIP_SUFFIXES):
            level = None if name.endswith(_TAR_SUFFIXES) else _LEVEL if compression is None else compression
            if target.is_dir():
                raise WriteError(f"{target} is a directory, and a file is to be written there")
            replace_with(target, lambda part: _write_tar(part, files, level))
        else:
            _check_replaceable(target)
            replace_with(target, lambda part: _write_directory(part, files), folder=True)
    except OSError as wrong:
        raise WriteError(f"{target} cannot be written: {wrong.strerror or wrong}", hint=_hint(target)) from wrong
    return target


def remove_archive(archive: Path) -> None:
    """Remove an archive, if it exists. Raises OSError."""
    if archive.is_dir():
        shutil.rmtree(archive)
    else:
        archive.unlink(missing_ok=True)


def collect_weights(graph: Graph) -> dict[str, WeightSource]:
    """Return the weights by label, sorted. Raises WriteError for a label that is not a file name or has two weights."""
    weights: dict[str, WeightSource] = {}
    for operation, value in graph.variables():
        label = operation.arguments["label"]
        if value.weight is None:
            raise WriteError(f"the variable `{value.name}` has no weight", origin=operation.origin)
        _check_label(label, operation.origin)
        if weights.setdefault(label, value.weight) is not value.weight:
            raise WriteError(f"two weights have the label {label!r}", origin=operation.origin)
    return {label: weights[label] for label in sorted(weights)}


def _check_label(label: str, origin: Origin | None) -> None:
    if not _LABEL.fullmatch(label) or max(map(len, label.split("/"))) > 250:
        raise WriteError(f"{label!r} is not valid as the label of a weight", origin=origin)


def _write_tar(part: Path, files: Mapping[str, _File], level: int | None) -> None:
    with contextlib.ExitStack() as stack:
        # Not "wb", which truncates: ext4 then waits at the end until the whole file is allocated on disk.
        out: IO[bytes] = stack.enter_context(part.open("ab"))
        if level is not None:
            # The bytes depend neither on the number of threads nor on the time: the header stores no time.
            threads = min(os.cpu_count() or 1, _THREADS)
            packer = igzip_threaded.open(  # type: ignore[no-untyped-call]
                out, "wb", compresslevel=level, threads=threads, block_size=_BLOCK
            )
            out = stack.enter_context(packer)
        for name, file in files.items():
            _add(out, name, file.size, file.pieces())
        out.write(bytes(2 * tarfile.BLOCKSIZE))  # end of the archive


def _add(out: IO[bytes], name: str, size: int, content: Iterable[bytes | memoryview]) -> None:
    """Write one file of a tar; tarfile itself would copy the weights."""
    out.write(_entry(name, size).tobuf(tarfile.GNU_FORMAT))
    for piece in content:
        out.write(piece)
    out.write(bytes(-size % tarfile.BLOCKSIZE))


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size = size
    return entry  # time, user and group are zero, the mode is 0o644


def _write_directory(part: Path, files: Mapping[str, _File]) -> None:
    for name, file in files.items():
        path = part / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb", buffering=0) as out:
            for piece in file.pieces():
                _write_all(out, piece)


def _write_all(out: io.FileIO, piece: bytes | memoryview) -> None:
    """Write all of a piece: a raw file may write less than requested, for example above 2 GiB."""
    rest = memoryview(piece).cast("B")
    while rest:
        rest = rest[out.write(rest) :]


def _check_replaceable(target: Path) -> None:
    """Check that `target` does not exist, is empty or holds an earlier export. Raises WriteError."""
    if not target.exists() and not target.is_symlink():
        return
    if not target.is_dir() or target.is_symlink():
        raise WriteError(f"{target} exists and is not a directory")
    files = [file.relative_to(target) for file in target.rglob("*") if not file.is_dir()]
    strange = [file for file in files if file.name not in (GRAPH_FILE, "graph.quant") and file.suffix != ".dat"]
    if strange or (files and Path(GRAPH_FILE) not in files):
        hint = "name a directory that is empty, does not exist or holds an earlier export"
        raise WriteError(f"{target} holds other files, for example {(strange or files)[0]}", hint=hint)


def _hint(target: Path) -> str | None:
    if not target.parent.exists():
        return f"the folder {target.parent} does not exist"
    if not os.access(target.parent, os.W_OK):
        return f"the folder {target.parent} is not writable"
    return None
