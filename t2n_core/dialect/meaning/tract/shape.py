"""Data types, shapes, and tensors that come from sizes alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from t2n_core.dialect.arrays import Array, all_axes, cast, data_type
from t2n_core.dialect.registry import defines
from t2n_core.errors import SpecError


@defines("tract_core_cast", result="computed")
def tract_cast(input: Array, to: str) -> Array:
    """Return the input in another data type.

    Domain: `to` is `bool`, `i8` to `i64`, `u8` to `u64`, `f16`, `f32`, `f64`, or `tdim`, a size expression.
    Special values: a float becomes an integer by truncation toward zero; beyond the range it is the nearest bound, and
    NaN is 0. An integer becomes a narrower one modulo its width, or one of the other sign with the same bits. Anything
    but 0 is True, NaN too; True is 1. A float becomes a narrower one by rounding to nearest, ties to even.
    Source: tract data/src/tensor.rs (cast_to_dt), which converts by Rust's `as`.
    """
    return cast(input, data_type(to))


@defines("tract_core_shape_of", result="int64")
def shape_of(input: Array) -> Array:
    """Return the shape of the input: one integer for each axis.

    Shapes: the result has the shape [rank]; [0] for a scalar. The values of the input do not matter.
    Source: ONNX Shape-1; tract nnef/src/ops/core/shape_of.rs.
    """
    return np.asarray(input.shape, dtype=np.int64)


@defines("tract_core_broadcast")
def broadcast(input: Array, shape: Sequence[int]) -> Array:
    """Return the input, repeated along axes of extent 1 to a shape.

    Shapes: as in NumPy's broadcasting: axes are aligned from the last one, missing leading ones count as 1. The
    result has exactly the shape of the argument.
    Source: ONNX Expand-8; tract core/src/ops/array/broadcast.rs.
    """
    try:
        return np.broadcast_to(input, tuple(int(size) for size in shape)).copy()
    except ValueError as wrong:
        raise SpecError(f"{input.shape} cannot be broadcast to {list(shape)}", op="tract_core_broadcast") from wrong


@defines("tract_core_range")
def tract_range(start: Array | int, end: Array | int, step: Array | int) -> Array:
    """Return start, start + step, start + 2 step, and so on, without `end`.

    Shapes: one axis of max(0, ceil((end - start) / step)) elements. Domain: scalars of one type, step is not 0; numbers
    of the text are size expressions, whose range is int64.
    Special values: a negative step counts down; empty where `end` is not ahead of `start` in the step's direction.
    Source: ONNX Range-11; tract core/src/ops/array/range.rs.
    """
    first, last, by = (np.asarray(value).reshape(()) for value in (start, end, step))
    if by == 0:
        raise SpecError("the step is 0", op="tract_core_range")
    count = max(0, int(np.ceil((np.float64(last) - np.float64(first)) / np.float64(by))))
    kind = np.dtype(np.int64) if isinstance(start, int) else first.dtype
    return np.asarray(first + np.arange(count) * by, dtype=kind)


@defines("tract_core_one_hot", result="float32")
def one_hot(input: Array, axis: int, dim: int, value_off: float = 0.0, value_on: float = 1.0) -> Array:
    """Return `value_on` where the coordinate on a new axis is the input's value, and `value_off` elsewhere.

    Shapes: the new axis, of extent `dim`, is inserted at `axis`. Domain: integers from -dim to dim - 1; the result
    has the type of the two values, float32.
    Special values: a negative index counts from the end; an index out of range switches nothing on.
    Source: ONNX OneHot-11; tract core/src/ops/array/one_hot.rs.
    """
    position = all_axes(input.ndim + 1, axis)[0]
    index = np.expand_dims(cast(input, np.dtype(np.int64)), position)
    places = np.arange(dim).reshape([dim if at == position else 1 for at in range(input.ndim + 1)])
    return np.where((index == places) | (index + dim == places), np.float64(value_on), np.float64(value_off))


@defines("tract_core_trilu")
def trilu(input: Array, k: Array | int, upper: bool) -> Array:
    """Return the upper or lower triangle of the last two axes, with zeros elsewhere.

    Formula: an element stays where column >= row + k (`upper`), or column <= row + k (not `upper`). Shapes: at least
    two axes; those before the last two are batches. k is an integer, negative ones are below the diagonal.
    Special values: what is outside the triangle is 0 even where it was NaN.
    Source: ONNX Trilu-14; tract core/src/ops/array/trilu.rs.
    """
    offset = int(np.asarray(k).reshape(()))
    rows, columns = np.arange(input.shape[-2])[:, None], np.arange(input.shape[-1])[None, :]
    mask = columns >= rows + offset if upper else columns <= rows + offset
    return np.where(mask, input, np.zeros((), input.dtype))


@defines("tract_core_downsample")
def downsample(input: Array, axis: int, stride: int, modulo: int = 0) -> Array:
    """Return every `stride`-th element along an axis, from the element `modulo` on.

    Shapes: the axis has ceil((extent - modulo) / |stride|) elements. Domain: stride is not 0; modulo is 0 where the
    stride is negative.
    Special values: a negative stride counts down from the last element; empty where modulo is beyond the extent.
    Source: tract core/src/ops/downsample/mod.rs.
    """
    if stride == 0 or (modulo and stride < 0):
        raise SpecError(f"stride {stride} with modulo {modulo}", op="tract_core_downsample")
    canonical_axis = all_axes(input.ndim, axis)[0]
    return input[(slice(None),) * canonical_axis + (slice(modulo if stride > 0 else None, None, stride),)].copy()


@defines("tract_core_dyn_slice")
def dyn_slice(input: Array, start: Array | int, end: Array | int, len: int, axis: int) -> Array:
    """Return the elements from `start` up to, without, `end` along an axis.

    Shapes: the axis has end - start elements; `len` repeats that size as an expression, for the engine's analysis.
    Domain: 0 <= start <= end <= extent, with start + len = end; anything else is an error.
    Source: tract core/src/ops/array/dyn_slice.rs.
    """
    first, last = int(np.asarray(start).reshape(())), int(np.asarray(end).reshape(()))
    canonical_axis = all_axes(input.ndim, axis)[0]
    if not 0 <= first <= last <= input.shape[canonical_axis] or first + int(len) != last:
        raise SpecError(
            f"{first}:{last} of length {len} on an axis of {input.shape[canonical_axis]}", op="tract_core_dyn_slice"
        )
    return input[(slice(None),) * canonical_axis + (slice(first, last),)].copy()


@defines("tract_core_force_eval")
def force_eval(inputs: Sequence[Array], slots: Sequence[int]) -> Array | tuple[Array, ...]:
    """Return the inputs that are not in `slots`, after all inputs were computed.

    It changes no value: the inputs in `slots` are computed for their effects. Domain: at least one input is not in
    `slots`.
    Source: tract 0.20.18 to 0.22.4, core/src/ops/force_eval.rs.
    """
    results = tuple(value for at, value in enumerate(inputs) if at not in slots)
    return results[0] if len(results) == 1 else results
