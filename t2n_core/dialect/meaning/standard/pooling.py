"""Reductions over windows that slide along all axes, and their transposes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t2n_core.dialect.meaning.extremes import lowest
from t2n_core.dialect.meaning.windows import Windows, padded, windows_of
from t2n_core.dialect.registry import defines


def _taps(windows: Windows, input: NDArray[Any], border: str, outside: Any = 0) -> list[NDArray[Any]]:
    """Return, for each position inside the window, its elements in all windows."""
    padded_input = padded(input, windows.padding, border, outside)
    count = windows.count(input.shape)
    return [padded_input[windows.places(offset, count)] for offset in windows.offsets()]


def _combined(function: np.ufunc, taps: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return a reduction over taps, one after the other: a stack of them takes the memory of all windows."""
    total: NDArray[Any] = function.reduce(taps[:1])  # in the dtype of a reduction
    for tap in taps[1:]:
        total = function(total, tap)
    return total


@defines("box")
def box(
    input: NDArray[Any],
    size: list[int],
    border: str = "constant",
    padding: list[tuple[int, int]] | None = None,
    stride: list[int] | None = None,
    dilation: list[int] | None = None,
    normalize: bool = False,
) -> NDArray[Any]:
    """Return the sum of each window, divided by its number of elements if `normalize`.

    Shapes: size, padding, stride and dilation are of all axes, batch and channels included. The result has
    floor((extent + before + after - (size - 1) * dilation - 1) / stride) + 1 positions; without padding
    ceil(extent / stride), the missing elements on both sides, an odd one after.
    Special values: border `constant` pads with zeros, which count as elements; `ignore` counts only the elements of the
    input. Other borders pad as `pad` does.
    Source: NNEF 1.0.5, Sliding-Window Operations (box).
    """
    windows = windows_of(input.shape, size, padding, stride, dilation)
    total = _combined(np.add, _taps(windows, input, border))
    if not normalize:
        return total
    if border != "ignore":
        return np.true_divide(total, math.prod(size))
    return np.true_divide(total, _combined(np.add, _taps(windows, np.ones_like(input), "constant")))


@defines("avg_pool")
def avg_pool(
    input: NDArray[Any],
    size: list[int],
    border: str = "constant",
    padding: list[tuple[int, int]] | None = None,
    stride: list[int] | None = None,
    dilation: list[int] | None = None,
) -> NDArray[Any]:
    """Return the mean of each window: `box` with `normalize`.

    Shapes and special values: as for `box`. Border `constant` counts the padding (PyTorch's `count_include_pad`),
    `ignore` does not.
    Source: NNEF 1.0.5, Pooling Operations (avg_pool).
    """
    return box(input, size, border, padding, stride, dilation, True)


@defines("rms_pool")
def rms_pool(
    input: NDArray[Any],
    size: list[int],
    border: str = "constant",
    padding: list[tuple[int, int]] | None = None,
    stride: list[int] | None = None,
    dilation: list[int] | None = None,
) -> NDArray[Any]:
    """Return the root of the mean square of each window: sqrt(avg_pool(x²)).

    Shapes and special values: as for `box`.
    Source: NNEF 1.0.5, Pooling Operations (rms_pool).
    """
    return np.sqrt(avg_pool(input * input, size, border, padding, stride, dilation))


def _outside(input: NDArray[Any], border: str) -> Any:
    """Return the padding of a maximum."""
    return lowest(input.dtype) if border == "ignore" else 0


@defines("max_pool")
def max_pool(
    input: NDArray[Any],
    size: list[int],
    border: str = "constant",
    padding: list[tuple[int, int]] | None = None,
    stride: list[int] | None = None,
    dilation: list[int] | None = None,
) -> NDArray[Any]:
    """Return the largest element of each window.

    Shapes: as for `box`.
    Special values: with border `constant` the zeros of the padding take part: the maximum of a window of negative
    elements at the border is 0. With `ignore` they do not. NaN if an element is NaN.
    Source: NNEF 1.0.5, Pooling Operations (max_pool).
    """
    windows = windows_of(input.shape, size, padding, stride, dilation)
    return _combined(np.maximum, _taps(windows, input, border, _outside(input, border)))


@defines("argmax_pool", result="int64")
def argmax_pool(
    input: NDArray[Any],
    size: list[int],
    border: str = "constant",
    padding: list[tuple[int, int]] | None = None,
    stride: list[int] | None = None,
    dilation: list[int] | None = None,
) -> NDArray[Any]:
    """Return the position inside each window of its largest element, in row-major order.

    Shapes: as for `box`.
    Special values: the first position where several are equal. With border `constant` it may lie in the padding.
    Source: NNEF 1.0.5, Sliding-Window Operations (argmax_pool).
    """
    windows = windows_of(input.shape, size, padding, stride, dilation)
    return np.argmax(np.stack(_taps(windows, input, border, _outside(input, border))), axis=0)


@defines("max_pool_with_index", result="same int64")
def max_pool_with_index(
    input: NDArray[Any],
    size: list[int],
    border: str = "constant",
    padding: list[tuple[int, int]] | None = None,
    stride: list[int] | None = None,
    dilation: list[int] | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the largest element of each window, and its position inside the window.

    Shapes and special values: as for `max_pool` and `argmax_pool`. tract returns other positions.
    Source: NNEF 1.0.5, Pooling Operations (max_pool_with_index).
    """
    window: tuple[Any, ...] = (size, border, padding, stride, dilation)
    return max_pool(input, *window), argmax_pool(input, *window)


@defines("sample")
def sample(
    input: NDArray[Any],
    index: NDArray[Any],
    size: list[int],
    border: str = "constant",
    padding: list[tuple[int, int]] | None = None,
    stride: list[int] | None = None,
    dilation: list[int] | None = None,
) -> NDArray[Any]:
    """Return the element at position `index` of each window.

    Shapes: `index` has one element for each window, counted as by `argmax_pool`; the result has its shape.
    Domain: 0 <= index < the number of elements of a window. Padding is 0 with borders `constant` and `ignore`.
    Source: NNEF 1.0.5, Sliding-Window Operations (sample).
    """
    windows = windows_of(input.shape, size, padding, stride, dilation)
    return np.take_along_axis(np.stack(_taps(windows, input, border)), index[None], axis=0)[0]


def _spread(
    shape: Sequence[int], windows: Windows, result_shape: Sequence[int], contributions: Sequence[NDArray[Any]]
) -> NDArray[Any]:
    """Return the sum of the contributions of each position inside the windows, at the places of the windows."""
    reached = [
        (extent - 1) * step + span for extent, step, span in zip(shape, windows.stride, windows.span, strict=True)
    ]
    total = np.zeros(reached)
    for offset, contribution in zip(windows.offsets(), contributions, strict=True):
        total[windows.places(offset, shape)] += contribution
    cut = [
        (-before, before + size - full_size)
        for (before, _), size, full_size in zip(windows.padding, result_shape, reached, strict=True)
    ]
    return padded(total, cut, "constant")


def _output_of(
    shape: Sequence[int],
    size: Sequence[int],
    padding: Sequence[Sequence[int]] | None,
    stride: Sequence[int] | None,
    dilation: Sequence[int] | None,
    output_shape: Sequence[int] | None,
) -> tuple[Windows, Sequence[int]]:
    """Return the windows of a transposed operation over an input of this shape, and the shape of its result."""
    steps = list(stride or [1] * len(shape))
    result_shape = output_shape or None
    if result_shape is None and not padding:
        result_shape = [extent * step for extent, step in zip(shape, steps, strict=True)]
    windows = windows_of(result_shape or shape, size, padding, steps, dilation)
    if result_shape is None:
        result_shape = [
            (extent - 1) * step + span - sum(amount)
            for extent, step, span, amount in zip(shape, steps, windows.span, windows.padding, strict=True)
        ]
    return windows, result_shape


@defines("debox")
def debox(
    input: NDArray[Any],
    size: list[int],
    border: str = "constant",
    padding: list[tuple[int, int]] | None = None,
    stride: list[int] | None = None,
    dilation: list[int] | None = None,
    output_shape: list[int] | None = None,
    normalize: bool = False,
) -> NDArray[Any]:
    """Return the transpose of `box`: each element is added to all places of its window.

    Shapes: size, padding, stride, dilation and output_shape are of all axes. The result has
    (extent - 1) * stride + (size - 1) * dilation + 1 - before - after elements, extent * stride without padding, or
    the extents of `output_shape`.
    Domain: border `constant` or `ignore`: what lies outside of the result is dropped; raises ValueError for others.
    Special values: if `normalize`, each element is divided by the number of elements of a window.
    Source: NNEF 1.0.5, Sliding-Window Operations (debox).
    """
    if border not in ("constant", "ignore"):
        raise ValueError(f"border {border!r} has no definition here")
    windows, result_shape = _output_of(input.shape, size, padding, stride, dilation, output_shape)
    share = np.true_divide(input, math.prod(size)) if normalize else input
    return _spread(input.shape, windows, result_shape, [share] * math.prod(size))


@defines("desample")
def desample(
    input: NDArray[Any],
    index: NDArray[Any],
    size: list[int],
    border: str = "constant",
    padding: list[tuple[int, int]] | None = None,
    stride: list[int] | None = None,
    dilation: list[int] | None = None,
    output_shape: list[int] | None = None,
) -> NDArray[Any]:
    """Return the transpose of `sample`: each element is added to the place at position `index` of its window.

    Shapes: as for `debox`; `index` has the shape of the input.
    Domain: border `constant` or `ignore`: what lies outside of the result is dropped; raises ValueError for others.
    Source: NNEF 1.0.5, Sliding-Window Operations (desample).
    """
    if border not in ("constant", "ignore"):
        raise ValueError(f"border {border!r} has no definition here")
    windows, result_shape = _output_of(input.shape, size, padding, stride, dilation, output_shape)
    parts = [np.where(index == position, input, 0) for position in range(math.prod(size))]
    return _spread(input.shape, windows, result_shape, parts)
