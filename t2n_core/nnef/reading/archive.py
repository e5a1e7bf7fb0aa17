"""Reader of archives: a directory, a tar or a gzipped tar, from this exporter or any other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t2n_core.errors import InputError
from t2n_core.nnef import dat
from t2n_core.nnef.reading.document import Document
from t2n_core.nnef.reading.graph_file import GRAPH_FILE
from t2n_core.nnef.reading.members import DAT, QUANT_FILE, read_members
from t2n_core.nnef.reading.parser import read_text
from t2n_core.nnef.reading.quantisation import Grid, read_grids


@dataclass(frozen=True, slots=True, eq=False)
class StoredTensor:
    """The file of a tensor whose items have no NumPy dtype, such as blocks of 4-bit integers; kept as it is."""

    data: bytes
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True, eq=False)
class ArchiveContent:
    """A graph with its weights, by label."""

    document: Document
    tensors: Mapping[str, NDArray[Any] | StoredTensor]
    grids: Mapping[str, Grid] = field(default_factory=dict)
    """The grids of quantised values, by name."""


def read_archive(path: Path) -> ArchiveContent:
    """Return graph and weights of an archive. Raises InputError if it is not an archive, or an unsupported one."""
    files = read_members(path)
    if GRAPH_FILE not in files:
        raise InputError(f"{path} holds no {GRAPH_FILE}")
    try:
        document = read_text(files[GRAPH_FILE].decode())
    except UnicodeDecodeError as wrong:
        raise InputError(f"{path}: {GRAPH_FILE} is not UTF-8: {wrong}") from wrong
    tensors = {
        name.removesuffix(DAT): tensor_of(data, f"{path}: {name}") for name, data in files.items() if name.endswith(DAT)
    }
    return ArchiveContent(document, tensors, read_grids(files.get(QUANT_FILE, b"").decode("utf-8", "replace")))


def tensor_of(data: bytes, where: str) -> NDArray[Any] | StoredTensor:
    """Return the tensor in a `.dat` file. Raises InputError, which names `where`, for a damaged one."""
    shape, dtype = dat.read_header(data, where)
    body = data[dat.HEADER_SIZE :]
    if len(body) < int.from_bytes(data[4:8], "little"):
        raise InputError(f"{where}: the header of the tensor is damaged")
    count = math.prod(shape)
    if dtype is None:
        return StoredTensor(data, shape)
    if dtype.kind == "b" and int.from_bytes(data[44:48], "little") == 1 and count <= 8 * len(body):
        return np.unpackbits(np.frombuffer(body, np.uint8), count=count).astype(np.bool_).reshape(shape)
    if len(body) < count * dtype.itemsize:
        raise InputError(f"{where}: {len(body)} bytes are too few for {dtype}{list(shape)}")
    if dtype.kind == "b":
        return np.frombuffer(body, np.uint8, count).astype(np.bool_).reshape(shape)
    return np.frombuffer(body, dtype, count).reshape(shape)


def tensor_bytes(tensor: NDArray[Any] | StoredTensor) -> bytes:
    """Return the content of the `.dat` file of a tensor."""
    return (
        tensor.data if isinstance(tensor, StoredTensor) else b"".join(map(bytes, dat.pieces(dat.ArrayWeight(tensor))))
    )
