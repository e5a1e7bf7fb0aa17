"""Reading elements at computed places, and writing elements there."""

from __future__ import annotations

from typing import Final

import numpy as np

from t2n_core.dialect.arrays import Array, all_axes, cast
from t2n_core.dialect.registry import defines
from t2n_core.errors import SpecError

_INT64: Final = np.dtype(np.int64)


def _places(indices: Array, extent: int, op: str) -> Array:
    """Return indices as int64, negative ones counted from the end.

    Raises SpecError for an index that is not in [-extent, extent).
    """
    positions = cast(indices, _INT64)
    if positions.size and not (-extent <= positions.min() and positions.max() < extent):
        raise SpecError(f"an index from {positions.min()} to {positions.max()} on an axis of extent {extent}", op=op)
    return np.where(positions < 0, positions + extent, positions)


@defines("tract_core_gather")
def gather(input: Array, indices: Array, axis: int, datum_type: str = "") -> Array:
    """Return the slices of the input at indices along an axis.

    Formula: out[a.., i.., b..] = input[a.., indices[i..], b..]. Shapes: the axis is replaced by the axes of `indices`,
    which may be a scalar. Domain: indices from -extent to extent - 1, a negative one counts from the end; `datum_type`
    is the type of the result, where the input is stored in blocks of 4 bits.
    Source: ONNX Gather-13; tract core/src/ops/array/gather.rs.
    """
    canonical_axis = all_axes(input.ndim, axis)[0]
    return np.asarray(
        np.take(input, _places(indices, input.shape[canonical_axis], "tract_core_gather"), axis=canonical_axis)
    )


@defines("tract_core_gather_elements")
def gather_elements(input: Array, indices: Array, axis: int) -> Array:
    """Return the elements whose coordinate on one axis is given by a tensor, element by element.

    Formula (axis 1): out[i, j, k] = input[i, indices[i, j, k], k]. Shapes: the result has the shape of `indices`, which
    has the input's rank and is nowhere longer than it on other axes. Domain: indices from -extent to extent - 1.
    Source: ONNX GatherElements-13; torch.gather; tract core/src/ops/array/gather_elements.rs.
    """
    canonical_axis = all_axes(input.ndim, axis)[0]
    where: list[Array] = list(np.indices(indices.shape, sparse=True))
    where[canonical_axis] = _places(indices, input.shape[canonical_axis], "tract_core_gather_elements")
    return np.asarray(input[tuple(where)])


@defines("tract_core_gather_nd")
def gather_nd(input: Array, indices: Array, batch_dims: int) -> Array:
    """Return the slices of the input at tuples of coordinates, batch by batch.

    Formula: out[b.., i.., s..] = input[b.., *indices[b.., i.., :], s..]. Shapes: both tensors share the first
    `batch_dims` axes; the last axis of `indices` holds the coordinates of a tuple. Domain: coordinates from -extent to
    extent - 1.
    Source: ONNX GatherND-13; tract core/src/ops/array/gather_nd.rs.
    """
    depth = indices.shape[-1]
    batch = [
        axis_index.reshape([size if at == axis else 1 for at in range(indices.ndim - 1)])
        for axis, size in enumerate(indices.shape[:batch_dims])
        for axis_index in [np.arange(size)]
    ]
    coordinates = [
        _places(indices[..., at], input.shape[batch_dims + at], "tract_core_gather_nd") for at in range(depth)
    ]
    return np.asarray(input[(*batch, *coordinates)])


def _reduce_into(output: Array, where: tuple[Array, ...], updates: Array, reduction: str, op: str) -> None:
    """Write updates at coordinates, one after the other in row-major order of the updates."""
    with np.errstate(over="ignore", invalid="ignore"):
        match reduction:
            case "none":
                output[where] = updates
            case "add":
                np.add.at(output, where, updates)
            case "mul":
                np.multiply.at(output, where, updates)
            case "min":
                np.minimum.at(output, where, updates)
            case "max":
                np.maximum.at(output, where, updates)
            case _:
                raise SpecError(f"no reduction is called {reduction!r}", op=op)


def _common(input: Array, updates: Array) -> Array:
    """Return a copy of the input in the type that holds it and the updates."""
    return np.array(input, dtype=np.result_type(input.dtype, updates.dtype))


@defines("tract_core_scatter_elements", result="input")
def scatter_elements(input: Array, indices: Array, updates: Array, axis: int, reduction: str = "none") -> Array:
    """Return the input with elements replaced by, or combined with, updates at indices along an axis.

    Formula (axis 1): out[i, indices[i, j, k], k] = updates[i, j, k], for `reduction` "none"; else the old value and the
    update are combined by "add", "mul", "min" or "max". Shapes: `indices` and `updates` have one shape, of the input's
    rank. Domain: indices from -extent to extent - 1.
    Special values: of several updates at one place the last in row-major order stays ("none"); integers add and
    multiply modulo their width; NaN has no meaning for "min" and "max".
    Source: ONNX ScatterElements-18; tract core/src/ops/array/scatter_elements.rs.
    """
    canonical_axis = all_axes(input.ndim, axis)[0]
    output = _common(input, updates)
    where: list[Array] = list(np.indices(indices.shape))
    where[canonical_axis] = _places(indices, input.shape[canonical_axis], "tract_core_scatter_elements")
    flat = tuple(at.ravel() for at in where)
    _reduce_into(output, flat, updates.ravel(), reduction, "tract_core_scatter_elements")
    return output


@defines("tract_core_scatter_nd", result="input")
def scatter_nd(input: Array, indices: Array, updates: Array, reduction: str = "none") -> Array:
    """Return the input with slices replaced by, or combined with, updates at tuples of coordinates.

    Formula: out[*indices[i.., :], s..] = updates[i.., s..], for `reduction` "none"; else the old values and the updates
    are combined by "add", "mul", "min" or "max". Shapes: the last axis of `indices` holds the coordinates of a tuple;
    `updates` has its other axes, then the axes of the input that no coordinate addresses. Domain: coordinates from
    -extent to extent - 1.
    Special values: of several updates at one place the last in row-major order stays ("none"); integers add and
    multiply modulo their width; NaN has no meaning for "min" and "max".
    Source: ONNX ScatterND-18; tract core/src/ops/array/scatter_nd.rs.
    """
    output, depth = _common(input, updates), indices.shape[-1]
    where = tuple(_places(indices[..., at], input.shape[at], "tract_core_scatter_nd").ravel() for at in range(depth))
    count = int(np.prod(indices.shape[:-1]))
    _reduce_into(output, where, updates.reshape([count, *input.shape[depth:]]), reduction, "tract_core_scatter_nd")
    return output
