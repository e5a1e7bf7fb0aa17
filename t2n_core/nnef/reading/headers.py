"""Shapes and dtypes of an archive's tensors, without reading the tensors."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from t2n_core.nnef import dat
from t2n_core.nnef.reading.members import archive_errors

DAT = ".dat"


@dataclass(frozen=True, slots=True)
class TensorHeader:
    """The first bytes of a tensor's file."""

    content: bytes
    shape: tuple[int, ...]
    dtype: np.dtype[Any] | None
    """None for blocks."""


def headers_of(archive: Path) -> dict[str, TensorHeader]:
    """Return the headers of an archive's tensors, by label. Raises InputError if it is not an archive."""
    headers = {}
    with files_of(archive) as files:
        for name, stream in files:
            if name.endswith(DAT):
                content = stream.read(dat.HEADER_SIZE)
                headers[name.removesuffix(DAT)] = TensorHeader(content, *dat.read_header(content, f"{archive}: {name}"))
    return headers


@contextmanager
def files_of(archive: Path) -> Iterator[Iterator[tuple[str, IO[bytes]]]]:
    """Yield the files of an archive, each with its name, to be read one after the other.

    Raises InputError if it is not an archive, or a damaged one.
    """
    with archive_errors(archive):
        if archive.is_dir():
            yield _files_of_folder(archive)
        else:
            with tarfile.open(archive, "r|*") as tar:
                yield _files_of_tar(tar)


def _files_of_folder(folder: Path) -> Iterator[tuple[str, IO[bytes]]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with path.open("rb") as stream:
                yield path.relative_to(folder).as_posix(), stream


def _files_of_tar(tar: tarfile.TarFile) -> Iterator[tuple[str, IO[bytes]]]:
    for member in tar:
        stream = tar.extractfile(member) if member.isfile() else None
        if stream is not None:
            yield member.name.removeprefix("./"), stream
