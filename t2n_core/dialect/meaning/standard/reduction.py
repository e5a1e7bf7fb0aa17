"""Reductions along axes. The reduced axes stay, with extent 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t2n_core.dialect.meaning.extremes import highest, lowest
from t2n_core.dialect.registry import defines


@defines("sum_reduce")
def sum_reduce(input: NDArray[Any], axes: list[int], normalize: bool = False) -> NDArray[Any]:
    """Return the sum along the axes, divided by the number of summed elements if `normalize`.

    Shapes: same as the input, with extent 1 at the axes. No axes: the input itself.
    Special values: 0 for an empty axis, 0 / 0 = NaN if normalised. Integers wrap around; normalised ones are divided
    towards zero.
    Source: NNEF 1.0.5, Reduce operations; tract nnef/src/ops/nnef/deser.rs for integers.
    """
    total = np.sum(input, axis=tuple(axes), keepdims=True, dtype=input.dtype)
    if not normalize:
        return total
    count = math.prod(input.shape[axis] for axis in axes)
    if input.dtype.kind == "f":
        return np.true_divide(total, count)
    return (np.abs(total) // count * np.sign(total)).astype(input.dtype)


@defines("mean_reduce")
def mean_reduce(input: NDArray[Any], axes: list[int]) -> NDArray[Any]:
    """Return the mean along the axes.

    Shapes: same as the input, with extent 1 at the axes. No axes: the input itself.
    Special values: NaN for an empty axis.
    Source: NNEF 1.0.5, Reduce operations.
    """
    return sum_reduce(input, axes, True)


@defines("moments")
def moments(input: NDArray[Any], axes: list[int]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return mean and variance along the axes.

    Formula: the variance is the mean of the squared differences from the mean (divided by n, not n - 1).
    Shapes: same as the input, with extent 1 at the axes.
    Special values: NaN for an empty axis; a variance of NaN where the mean is infinite.
    Source: NNEF 1.0.5, Reduce operations.
    """
    mean = mean_reduce(input, axes)
    return mean, mean_reduce((input - mean) ** 2, axes)


@defines("max_reduce")
def max_reduce(input: NDArray[Any], axes: list[int]) -> NDArray[Any]:
    """Return the largest element along the axes.

    Shapes: same as the input, with extent 1 at the axes. No axes: the input itself.
    Special values: NaN if an element is NaN; the lowest value of the data type for an empty axis.
    Source: NNEF 1.0.5, Reduce operations.
    """
    return np.max(input, axis=tuple(axes), keepdims=True, initial=lowest(input.dtype))


@defines("min_reduce")
def min_reduce(input: NDArray[Any], axes: list[int]) -> NDArray[Any]:
    """Return the smallest element along the axes.

    Shapes: same as the input, with extent 1 at the axes. No axes: the input itself.
    Special values: NaN if an element is NaN; the highest value of the data type for an empty axis.
    Source: NNEF 1.0.5, Reduce operations.
    """
    return np.min(input, axis=tuple(axes), keepdims=True, initial=highest(input.dtype))


@defines("any_reduce", result="bool")
def any_reduce(input: NDArray[Any], axes: list[int]) -> NDArray[Any]:
    """Return whether an element along the axes is true.

    Shapes: same as the input, with extent 1 at the axes. No axes: the input itself.
    Special values: false for an empty axis.
    Source: NNEF 1.0.5, Reduce operations.
    """
    return np.any(input, axis=tuple(axes), keepdims=True)


@defines("all_reduce", result="bool")
def all_reduce(input: NDArray[Any], axes: list[int]) -> NDArray[Any]:
    """Return whether all elements along the axes are true.

    Shapes: same as the input, with extent 1 at the axes. No axes: the input itself.
    Special values: true for an empty axis.
    Source: NNEF 1.0.5, Reduce operations.
    """
    return np.all(input, axis=tuple(axes), keepdims=True)


def _place(find: Callable[..., Any], input: NDArray[Any], axes: list[int]) -> NDArray[Any]:
    """Return the position that `find` returns along all axes together, counted in the order of the axes."""
    along = sorted(axes)
    last = np.moveaxis(input, along, range(-len(along), 0)).reshape(
        *(extent for axis, extent in enumerate(input.shape) if axis not in along), -1
    )
    return np.expand_dims(find(last, axis=-1), tuple(along)).astype(np.int64)


@defines("argmax_reduce", result="int64")
def argmax_reduce(input: NDArray[Any], axes: list[int]) -> NDArray[Any]:
    """Return the position of the largest element along the axes.

    Shapes: same as the input, with extent 1 at the axes. Over several axes the position counts them in row-major order.
    Domain: the axes are not empty.
    Special values: the first position where several are equal; the position of the first NaN, if any.
    Source: NNEF 1.0.5, Reduce operations.
    """
    return _place(np.argmax, input, axes)


@defines("argmin_reduce", result="int64")
def argmin_reduce(input: NDArray[Any], axes: list[int]) -> NDArray[Any]:
    """Return the position of the smallest element along the axes.

    Shapes: same as the input, with extent 1 at the axes. Over several axes the position counts them in row-major order.
    Domain: the axes are not empty.
    Special values: the first position where several are equal; the position of the first NaN, if any.
    Source: NNEF 1.0.5, Reduce operations.
    """
    return _place(np.argmin, input, axes)
