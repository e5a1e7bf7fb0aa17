"""Reductions along axes, running sums, softmax, and the greatest elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from t2n_core.dialect.arrays import Array, all_axes, integers
from t2n_core.dialect.registry import defines
from t2n_core.errors import SpecError


def _last_of(mask: Array, axes: tuple[int, ...]) -> Array:
    """Return the greatest index of a True element over the axes together, in row-major order."""
    rank = mask.ndim
    retained_axes = [axis for axis in range(rank) if axis not in axes]
    moved = np.transpose(mask, [*retained_axes, *sorted(axes)])
    flat = moved.reshape([*(mask.shape[axis] for axis in retained_axes), -1])
    last = flat.shape[-1] - 1 - np.argmax(flat[..., ::-1], axis=-1)
    return np.asarray(last, dtype=np.int64).reshape([1 if axis in axes else mask.shape[axis] for axis in range(rank)])


@defines("tract_core_argmax_reduce_last", result="int64")
def argmax_reduce_last(input: Array, axes: Sequence[int]) -> Array:
    """Return the index of the greatest element along an axis, the last one of equal ones.

    Shapes: the axes have extent 1 in the result; with several axes the index counts their elements in row-major order.
    Domain: numbers without NaN; axes that are not empty.
    Special values: among equal elements, infinities too, the greatest index.
    Source: ONNX ArgMax-13 with select_last_index = 1; tract core/src/ops/nn/reduce.rs.
    """
    over = all_axes(input.ndim, *axes)
    return _last_of(input == np.max(input, axis=over, keepdims=True), over)


@defines("tract_core_argmin_reduce_last", result="int64")
def argmin_reduce_last(input: Array, axes: Sequence[int]) -> Array:
    """Return the index of the least element along an axis, the last one of equal ones.

    Shapes: the axes have extent 1 in the result; with several axes the index counts their elements in row-major order.
    Domain: numbers without NaN; axes that are not empty.
    Special values: among equal elements, infinities too, the greatest index.
    Source: ONNX ArgMin-13 with select_last_index = 1; tract core/src/ops/nn/reduce.rs.
    """
    over = all_axes(input.ndim, *axes)
    return _last_of(input == np.min(input, axis=over, keepdims=True), over)


@defines("tract_core_product_reduce")
def product_reduce(input: Array, axes: Sequence[int]) -> Array:
    """Return the product of the elements along axes.

    Shapes: the axes have extent 1 in the result. Special values: 1 over an empty axis; integers multiply modulo their
    width; 0 * infinity is NaN.
    Source: ONNX ReduceProd-13; tract core/src/ops/nn/reduce.rs.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.prod(input, axis=all_axes(input.ndim, *axes), keepdims=True, dtype=input.dtype))


@defines("tract_core_cumsum")
def cumsum(input: Array, axis: int, exclusive: bool, reverse: bool) -> Array:
    """Return the running sums along an axis.

    Formula: the sum of the elements up to this one (`exclusive`: before this one); `reverse`: from this one
    (`exclusive`: after this one) to the end. Shapes: same as the input.
    Special values: an exclusive sum begins with 0; integers add modulo their width; NaN stays from its element on.
    Source: ONNX CumSum-14; tract core/src/ops/array/cumsum.rs.
    """
    canonical_axis = all_axes(input.ndim, axis)[0]
    values = np.flip(input, canonical_axis) if reverse else input
    if exclusive:
        first = np.zeros([*input.shape[:canonical_axis], 1, *input.shape[canonical_axis + 1 :]], dtype=input.dtype)
        values = np.concatenate([first, values], axis=canonical_axis)
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.cumsum(values, axis=canonical_axis, dtype=input.dtype)
    sums = np.take(sums, range(input.shape[canonical_axis]), axis=canonical_axis)
    return np.flip(sums, canonical_axis).copy() if reverse else sums


@defines("tract_core_softmax")
def softmax(x: Array, axes: Array | Sequence[int], exp: str = "libc") -> Array:
    """Return the exponentials, divided by their sum over axes together.

    Formula: exp(x - max) / sum(exp(x - max)). Shapes: same as the input. `exp` names a former approximation and does
    not change the meaning.
    Special values: -inf gives 0 beside a finite element; NaN over axes that hold NaN, +inf or only -inf.
    Source: torch.softmax; tract core/src/ops/nn/softmax/mod.rs.
    """
    over = all_axes(x.ndim, *integers(axes))
    with np.errstate(invalid="ignore"):
        raised = np.exp(x - np.max(x, axis=over, keepdims=True))
        return np.asarray(raised / np.sum(raised, axis=over, keepdims=True))


@defines("tract_core_log_softmax")
def log_softmax(x: Array, axes: Array | Sequence[int]) -> Array:
    """Return the logarithm of the softmax over axes together.

    Formula: x - max - log(sum(exp(x - max))). Shapes: same as the input.
    Special values: -inf stays -inf beside a finite element; NaN over axes that hold NaN, +inf or only -inf.
    Source: torch.log_softmax; tract core/src/ops/nn/softmax/mod.rs.
    """
    over = all_axes(x.ndim, *integers(axes))
    with np.errstate(invalid="ignore"):
        centred = x - np.max(x, axis=over, keepdims=True)
        return np.asarray(centred - np.log(np.sum(np.exp(centred), axis=over, keepdims=True)))


@defines("tract_core_topk", result="same int64")
def topk(input: Array, k: Array | int, axis: int, largest: bool) -> tuple[Array, Array]:
    """Return the k greatest or least elements along an axis, sorted, and their indices as int64.

    Shapes: the axis has k elements in both results. Domain: numbers without NaN, 0 <= k <= extent.
    Special values: of equal elements the one with the lower index comes first.
    Source: ONNX TopK-11; tract core/src/ops/array/topk.rs.
    """
    canonical_axis, count = all_axes(input.ndim, axis)[0], int(np.asarray(k).reshape(()))
    if not 0 <= count <= input.shape[canonical_axis]:
        raise SpecError(f"{count} elements of {input.shape[canonical_axis]}", op="tract_core_topk")
    if largest:
        backwards = np.argsort(np.flip(input, canonical_axis), axis=canonical_axis, kind="stable")
        order = input.shape[canonical_axis] - 1 - np.flip(backwards, canonical_axis)
    else:
        order = np.argsort(input, axis=canonical_axis, kind="stable")
    first = np.take(order, range(count), axis=canonical_axis).astype(np.int64)
    return np.take_along_axis(input, first, axis=canonical_axis), first
