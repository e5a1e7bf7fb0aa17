"""Arrays and data types in the definitions of operators."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from t2n_core.errors import SpecError

Array = NDArray[Any]

DATA_TYPES: Final = {
    "bool": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "tdim": np.dtype(np.int64),
    "u8": np.dtype(np.uint8),
    "u16": np.dtype(np.uint16),
    "u32": np.dtype(np.uint32),
    "u64": np.dtype(np.uint64),
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}
"""numpy's data types by the names that tract's attributes use; a size expression (`tdim`) is an int64."""


_QUANTISED: Final = re.compile(r"Q([UI]\d+)(?:\(.*\))?", re.IGNORECASE)


def data_type(name: str) -> np.dtype[Any]:
    """Return numpy's data type for the name in an attribute: `f32`, `F32`, `i64`, `bool`, `TDim`.

    A quantised type, `QU8(Z:3 S:0.5)`, is the type of its integers.

    Raises SpecError for a type that has no array, such as a string or a blob.
    """
    quantised = _QUANTISED.fullmatch(name)
    dtype = DATA_TYPES.get(quantised[1].lower() if quantised else name.lower())
    if dtype is None:
        raise SpecError(f"no data type of tract's NNEF is called {name!r}")
    return dtype


def cast(values: Array, to: np.dtype[Any]) -> Array:
    """Return `values` converted as Rust's `as` converts.

    A float becomes an integer by truncation toward zero; beyond the integer's range it becomes the nearest bound, and
    NaN becomes 0. An integer becomes a narrower one modulo its width. Anything becomes a boolean by `!= 0`. A float
    becomes a narrower float by rounding to nearest, ties to even; beyond the range it becomes infinite.
    """
    if to == np.bool_:
        return np.asarray(values != 0)
    if values.dtype.kind == "f" and to.kind in "iu":
        bounds = np.iinfo(to)
        integers = np.trunc(np.nan_to_num(values, nan=0.0, posinf=float(bounds.max), neginf=float(bounds.min)))
        above, below = integers >= float(bounds.max), integers <= float(bounds.min)
        inside = np.where(above | below, 0.0, integers).astype(to)
        return np.where(above, bounds.max, np.where(below, bounds.min, inside)).astype(to)
    with np.errstate(over="ignore"):
        return values.astype(to)


def round_half_away(values: Array) -> Array:
    """Return the nearest integers, ties away from zero, as Rust's `round` does."""
    return np.asarray(np.copysign(np.floor(np.abs(values) + 0.5), values))


def all_axes(rank: int, *axes: int) -> tuple[int, ...]:
    """Return `axes` with negative ones counted from the end.

    Raises SpecError for an axis that the tensor does not have.
    """
    for axis in axes:
        if not -rank <= axis < rank:
            raise SpecError(f"a tensor of rank {rank} has no axis {axis}")
    return tuple(axis % rank for axis in axes)


def integers(values: Array | Sequence[int] | int) -> list[int]:
    """Return the integers of an attribute that may be written as a tensor, an array or one number."""
    return [int(value) for value in np.atleast_1d(np.asarray(values)).ravel()]
