"""Untrusted files of arrays (`.npz`): only numeric arrays, no larger than their headers declare, and not too many."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from t2n_core.foreign import ForeignFileError, open_file
from t2n_core.text import text_of

MOST_BYTES = 2 << 30
"""Most bytes of all arrays of a file, decompressed."""
_MOST_ARRAYS = 10_000
_NUMBERS = "biufc"
_ONE_ARRAY = b"\x93NUMPY"
_SUFFIX = ".npy"


def read_npz(path: Path, most: int = MOST_BYTES) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file by their names, of at most `most` bytes in all, in the byte order of this machine.

    Raises ForeignFileError for a damaged file, and OSError.
    """
    with open_file(path) as file:
        if file.read(len(_ONE_ARRAY)) == _ONE_ARRAY:
            raise ForeignFileError(
                f"{path.name} is one array without a name: save it with numpy.savez(path, name=array)"
            )
        try:
            with zipfile.ZipFile(file) as archive:
                entries = archive.infolist()
                size = sum(entry.file_size for entry in entries)
                if len(entries) > _MOST_ARRAYS or size > most:
                    raise ForeignFileError(f"{len(entries)} arrays of {size} bytes are too many")
                arrays = {entry.filename.removesuffix(_SUFFIX): _array_of(archive, entry) for entry in entries}
                if len(arrays) < len(entries):
                    raise ForeignFileError("two of its arrays have one name")
                return arrays
        except Exception as exc:  # zipfile and zlib raise nearly everything
            reason = text_of(exc) or type(exc).__name__
            raise ForeignFileError(f"{path.name} is not a file of arrays: {reason}") from None


def _array_of(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(entry) as stream:
        shape, by_columns, dtype = _header(stream)
        if dtype.kind not in _NUMBERS:
            raise ForeignFileError(f"{entry.filename} holds {dtype}, which is not numeric")
        left = entry.file_size - stream.tell()
        if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != left:
            raise ForeignFileError(f"{entry.filename} has {left} bytes for {dtype} of shape {shape}")
        data = stream.read(left)
    array = np.frombuffer(data, dtype).astype(dtype.newbyteorder("="), copy=False)
    return array.reshape(shape[::-1]).T if by_columns else array.reshape(shape)


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(stream)
    if version == (2, 0):
        return np.lib.format.read_array_header_2_0(stream)
    raise ForeignFileError(f"version {version} of the format")
