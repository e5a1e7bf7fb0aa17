"""Tensors with the data type that they have in the engine, while they are computed in float64."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from t2n_core.errors import InputError
from t2n_core.nnef.dat import BLOCK_BYTES, BLOCK_ELEMENTS, HEADER_SIZE
from t2n_core.nnef.reading.archive import StoredTensor
from t2n_core.nnef.reading.quantisation import Grid

_FLOAT32: Final = np.dtype(np.float32)
_BLOCKS: Final = 0x54523040
"""The item type of blocks of 4 bits in the header of a tensor: tract's vendor number with its format Q4_0."""
_OLD_BLOCKS: Final = 0x54522040
"""The item type of such blocks in the order of tract up to 0.21.8, and of the exporters of that time."""
_DATUM_TYPES: Final = {
    "scalar": "float32",
    "integer": "int64",
    "logical": "bool",
    "bool": "bool",
    "tdim": "int64",
    **{
        f"{letter}{bits}": f"{kind}{bits}" for letter, kind in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)
    },
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
}


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A tensor: its elements, and its data type in the engine."""

    stored: NDArray[Any] | StoredTensor
    """The elements: floats in at least the data type's precision, a weight as the archive holds it."""
    dtype: np.dtype[Any]
    is_constant: bool = False
    """True where it depends on no input."""
    grid: Grid | None = None
    """The levels that an engine keeps it in, if it is quantised."""

    @property
    def shape(self) -> tuple[int, ...]:
        return self.stored.shape

    @property
    def array(self) -> NDArray[Any]:
        """The elements, floats as float64."""
        elements = from_blocks(self.stored) if isinstance(self.stored, StoredTensor) else self.stored
        return elements.astype(np.float64, copy=False) if self.dtype.kind == "f" else elements

    def raw(self) -> NDArray[Any]:
        """Return the elements in the data type itself."""
        return self.array.astype(self.dtype, copy=False)

    def as_type(self, dtype: np.dtype[Any]) -> Tensor:
        """Return it cast to another data type: floats are cut off towards zero for integers, constants rounded."""
        if dtype == self.dtype:
            return self
        if self.is_constant or dtype.kind != "f":
            return Tensor(self.array.astype(dtype), dtype, self.is_constant)
        return Tensor(self.array.astype(np.float64, copy=False), dtype, self.is_constant)


def tensor_of(value: Any) -> Tensor:
    """Return a tensor, or a value of the text as one: numbers with a point are float32, others int64.

    In a list tract makes int32 of the others, if they are no sizes; an empty list is float32. Raises InputError for a
    value that is not a tensor.
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, bool):
        return Tensor(np.asarray(value), np.dtype(np.bool_), True)
    if isinstance(value, int):
        return Tensor(np.asarray(int(value), dtype=np.int64), np.dtype(np.int64), True)
    if isinstance(value, float):
        return Tensor(np.asarray(value, dtype=np.float64), _FLOAT32, True)
    if isinstance(value, list | tuple) and value:
        items = [tensor_of(item) for item in value]
        if len(items) == 1 and isinstance(value, tuple):
            return items[0]
        together = np.stack([item.array for item in items])
        is_short = all(type(item) is int and abs(item) < 1 << 31 for item in value)
        dtype = np.dtype(np.int32) if is_short else items[0].dtype
        return Tensor(together.astype(dtype) if is_short else together, dtype, all(item.is_constant for item in items))
    if isinstance(value, list) and not value:
        return Tensor(np.zeros(0), _FLOAT32, True)
    raise InputError(f"{value!r} is not a tensor")


def datum_type(name: str) -> np.dtype[Any]:
    """Return the data type of a name in tract's text, such as `F32` or `TDim`, or in the standard's, such as `scalar`.

    Sizes are int64. Raises InputError for an unknown one.
    """
    dtype_name = _DATUM_TYPES.get(name.lower())
    if dtype_name is None:
        raise InputError(f"values of the data type {name!r} are not evaluated")
    return np.dtype(dtype_name)


def from_blocks(stored: StoredTensor) -> NDArray[np.float32]:
    """Return the elements of a tensor in blocks of 4 bits: (nibble - 8) * scale, with the scale in float16.

    A block holds the scale, then 16 bytes, of which byte i has element i in its low nibble and element i + 16 in its
    high one, in the old format elements 2i and 2i + 1. Raises InputError for another format.
    """
    item_type = int.from_bytes(stored.data[48:52], "little")
    if item_type not in (_BLOCKS, _OLD_BLOCKS):
        raise InputError(f"a tensor has items of the type {item_type:#x}, which cannot be read here")
    count = math.prod(stored.shape) // BLOCK_ELEMENTS
    blocks = np.frombuffer(stored.data, np.uint8, count * BLOCK_BYTES, HEADER_SIZE).reshape(count, BLOCK_BYTES)
    scales = blocks[:, :2].copy().view(np.float16).astype(np.float32)
    halves = np.stack([blocks[:, 2:] & 15, blocks[:, 2:] >> 4], axis=1 if item_type == _BLOCKS else 2)
    levels = halves.reshape(count, BLOCK_ELEMENTS).astype(np.float32) - 8
    return (levels * scales).reshape(stored.shape)
