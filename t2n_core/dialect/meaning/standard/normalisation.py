"""Normalisations: over windows, over axes, and by given moments."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from t2n_core.dialect.meaning.broadcasting import aligned
from t2n_core.dialect.meaning.standard.pooling import box
from t2n_core.dialect.registry import defines


def _mean_around(input: NDArray[Any], size: list[int]) -> NDArray[Any]:
    return box(input, size, normalize=True)


@defines("local_response_normalization")
def local_response_normalization(
    input: NDArray[Any], size: list[int], alpha: float = 1.0, beta: float = 0.5, bias: float = 1.0
) -> NDArray[Any]:
    """Return x / (bias + alpha * mean(x²))^beta, with the mean over the window around each element.

    Shapes: `size` is of all axes, batch and channels included; the window is padded with zeros, which count.
    Source: NNEF 1.0.5, Normalization Operations (local_response_normalization).
    """
    return input / (bias + alpha * _mean_around(input * input, size)) ** beta


@defines("local_mean_normalization")
def local_mean_normalization(input: NDArray[Any], size: list[int]) -> NDArray[Any]:
    """Return x - mean(x), with the mean over the window around each element.

    Shapes: `size` is of all axes; the window is padded with zeros, which count.
    Source: NNEF 1.0.5, Normalization Operations (local_mean_normalization).
    """
    return input - _mean_around(input, size)


@defines("local_variance_normalization")
def local_variance_normalization(
    input: NDArray[Any], size: list[int], bias: float = 0.0, epsilon: float = 0.0
) -> NDArray[Any]:
    """Return x / max(sqrt(mean(x²)) + bias, epsilon), with the mean over the window around each element.

    Shapes: `size` is of all axes; the window is padded with zeros, which count.
    Special values: 0 / 0 = NaN in a window of zeros without bias and epsilon.
    Source: NNEF 1.0.5, Normalization Operations (local_variance_normalization).
    """
    return input / np.fmax(np.sqrt(_mean_around(input * input, size)) + bias, epsilon)


@defines("local_contrast_normalization")
def local_contrast_normalization(
    input: NDArray[Any], size: list[int], bias: float = 0.0, epsilon: float = 0.0
) -> NDArray[Any]:
    """Return local_variance_normalization(local_mean_normalization(x)).

    Shapes and special values: as those two.
    Source: NNEF 1.0.5, Normalization Operations (local_contrast_normalization).
    """
    return local_variance_normalization(local_mean_normalization(input, size), size, bias, epsilon)


@defines("l1_normalization")
def l1_normalization(input: NDArray[Any], axes: list[int], bias: float = 0.0, epsilon: float = 0.0) -> NDArray[Any]:
    """Return x / max(sum(|x|) + bias, epsilon), with the sum along the axes.

    Special values: 0 / 0 = NaN where all are zero, without bias and epsilon.
    Source: NNEF 1.0.5, Normalization Operations (l1_normalization).
    """
    return input / np.fmax(np.sum(np.abs(input), axis=tuple(axes), keepdims=True) + bias, epsilon)


@defines("l2_normalization")
def l2_normalization(input: NDArray[Any], axes: list[int], bias: float = 0.0, epsilon: float = 0.0) -> NDArray[Any]:
    """Return x / max(sqrt(sum(x²)) + bias, epsilon), with the sum along the axes.

    Special values: 0 / 0 = NaN where all are zero, without bias and epsilon.
    Source: NNEF 1.0.5, Normalization Operations (l2_normalization).
    """
    return input / np.fmax(np.sqrt(np.sum(input * input, axis=tuple(axes), keepdims=True)) + bias, epsilon)


@defines("batch_normalization")
def batch_normalization(
    input: NDArray[Any],
    mean: NDArray[Any],
    variance: NDArray[Any],
    offset: NDArray[Any],
    scale: NDArray[Any],
    epsilon: float,
) -> NDArray[Any]:
    """Return offset + scale * (x - mean) / sqrt(variance + epsilon).

    Shapes: all broadcast to the input, aligned at the first axis: [1, C] for one value of each channel.
    Special values: NaN for variance + epsilon < 0.
    Source: NNEF 1.0.5, Normalization Operations (batch_normalization).
    """
    x, mean, variance, offset, scale = aligned(input, mean, variance, offset, scale)
    return offset + scale * (x - mean) / np.sqrt(variance + epsilon)
