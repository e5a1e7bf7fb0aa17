"""Up-sampling and down-sampling by integer factors, of the axes from the third on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from t2n_core.dialect.meaning.standard.pooling import box
from t2n_core.dialect.registry import defines


@defines("nearest_downsample")
def nearest_downsample(input: NDArray[Any], factor: list[int]) -> NDArray[Any]:
    """Return every `factor`-th element along each axis, from the first one on.

    Shapes: input [n, c, …], one factor for each further axis; ceil(extent / factor).
    Source: NNEF 1.0.5, Up and Down-Sampling (nearest_downsample).
    """
    return input[(slice(None), slice(None), *(slice(None, None, step) for step in factor))]


@defines("area_downsample")
def area_downsample(input: NDArray[Any], factor: list[int]) -> NDArray[Any]:
    """Return the means of blocks of `factor` elements along each axis.

    Shapes: input [n, c, …], one factor for each further axis; floor(extent / factor): an incomplete block is dropped.
    Source: NNEF 1.0.5, Up and Down-Sampling (area_downsample).
    """
    size = [1, 1, *factor]
    return box(input, size, padding=[(0, 0)] * input.ndim, stride=size, normalize=True)


@defines("nearest_upsample")
def nearest_upsample(input: NDArray[Any], factor: list[int]) -> NDArray[Any]:
    """Return each element `factor` times along each axis.

    Shapes: input [n, c, …], one factor for each further axis; extent * factor.
    Source: NNEF 1.0.5, Up and Down-Sampling (nearest_upsample).
    """
    for axis, times in enumerate(factor, start=2):
        input = np.repeat(input, times, axis)
    return input


@defines("multilinear_upsample")
def multilinear_upsample(
    input: NDArray[Any], factor: list[int], method: str = "symmetric", border: str = "replicate"
) -> NDArray[Any]:
    """Return the input interpolated linearly along each axis.

    Formula: element i of the result is at place p = (i + 0.5) / factor - 0.5 of the input for method `symmetric`,
    i / factor for `asymmetric`, i * (extent - 1) / (extent * factor - 1) for `aligned`; the value there is
    (1 - w) * in[floor(p)] + w * in[floor(p) + 1] with w = p - floor(p).
    Shapes: input [n, c, …], one factor for each further axis; extent * factor.
    Special values: places outside of the input have its nearest element with border `replicate`, 0 with `constant`.
    With an extent of 1, `aligned` repeats the element.
    Source: NNEF 1.0.5, Up and Down-Sampling (multilinear_upsample).
    """
    for axis, times in enumerate(factor, start=2):
        below, weight = _places(input.shape[axis], times, method)
        along = np.reshape(weight, (-1, *[1] * (input.ndim - axis - 1)))
        input = (1.0 - along) * _elements_at(input, below, axis, border) + along * _elements_at(
            input, below + 1, axis, border
        )
    return input


def _places(extent: int, times: int, method: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return, for each element of the result, the element of the input below it, and the weight of the next one."""
    steps = np.arange(extent * times)
    if method == "aligned":
        above, below = steps * (extent - 1), max(extent * times - 1, 1)
    elif method == "symmetric":
        above, below = 2 * steps + 1 - times, 2 * times
    elif method == "asymmetric":
        above, below = steps, times
    else:
        raise ValueError(f"{method!r} is not a method: symmetric, asymmetric, aligned")
    return above // below, above % below / below  # as integers: exact where an element is met


def _elements_at(input: NDArray[Any], places: NDArray[np.int64], axis: int, border: str) -> NDArray[Any]:
    extent = input.shape[axis]
    elements = np.take(input, np.clip(places, 0, extent - 1), axis)
    if border == "replicate":
        return elements
    if border != "constant":
        raise ValueError(f"{border!r} is not a border of an interpolation: replicate, constant")
    inside = ((places >= 0) & (places < extent)).reshape(-1, *[1] * (input.ndim - axis - 1))
    return np.where(inside, elements, 0.0)
