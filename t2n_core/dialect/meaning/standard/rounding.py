"""Rounding to integers, and rounding to the levels of a quantised format."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from t2n_core.dialect.meaning.broadcasting import aligned
from t2n_core.dialect.registry import defines


@defines("floor")
def floor(x: NDArray[Any]) -> NDArray[Any]:
    """Return the largest integer that is not above x.

    Special values: infinities and NaN stay. Integers stay.
    Source: NNEF 1.0.5, Rounding operations.
    """
    return np.floor(x) if x.dtype.kind == "f" else x


@defines("ceil")
def ceil(x: NDArray[Any]) -> NDArray[Any]:
    """Return the smallest integer that is not below x.

    Special values: infinities and NaN stay. Integers stay.
    Source: NNEF 1.0.5, Rounding operations.
    """
    return np.ceil(x) if x.dtype.kind == "f" else x


@defines("round")
def round_half_up(x: NDArray[Any]) -> NDArray[Any]:
    """Return the nearest integer, ties rounded up: floor(x + 0.5).

    Special values: 2.5 becomes 3, -2.5 becomes -2; infinities and NaN stay. Integers stay. tract rounds ties away
    from zero, so that it differs at -0.5, -1.5, ….
    Source: NNEF 1.0.5, Rounding operations.
    """
    if x.dtype.kind != "f":
        return x
    low = np.floor(x)
    return np.where(
        np.isfinite(x), low + (x - low >= 0.5), x
    )  # x + 0.5 itself would be rounded, for example just below 0.5


@defines("min_max_linear_quantize")
def min_max_linear_quantize(
    x: NDArray[Any], min: NDArray[Any], max: NDArray[Any], bits: int, signed: bool, symmetric: bool
) -> NDArray[Any]:
    """Return x rounded to one of the levels between `min` and `max`.

    Formula: with r = 2^bits - 1, one less if signed and symmetric, and z = clamp(x, min, max):
    round((z - min) / (max - min) * r) / r * (max - min) + min.
    Shapes: `min` and `max` broadcast to x, aligned at the first axis.
    Domain: min < max. Ties are rounded up, as by `round`.
    Source: NNEF 1.0.5, Quantisation operations.
    """
    x, low, high = aligned(x, min, max)
    steps = 2**bits - 1 - int(signed and symmetric)
    fraction = (np.fmax(np.fmin(x, high), low) - low) / (high - low)
    return round_half_up(np.asarray(fraction * steps)) / steps * (high - low) + low


@defines("linear_quantize")
def linear_quantize(x: NDArray[Any], min: NDArray[Any], max: NDArray[Any], bits: int) -> NDArray[Any]:
    """Return x rounded to one of 2^bits levels from `min` to `max`.

    Formula: `min_max_linear_quantize` with `signed` and `symmetric` false.
    Source: NNEF 1.0.5, Quantisation operations.
    """
    return min_max_linear_quantize(x, min, max, bits, False, False)


@defines("zero_point_linear_quantize")
def zero_point_linear_quantize(
    x: NDArray[Any], zero_point: NDArray[Any], scale: NDArray[Any], bits: int, signed: bool, symmetric: bool
) -> NDArray[Any]:
    """Return x rounded to a multiple of `scale` that an integer of `bits` bits can hold.

    Formula: q = clamp(round(x / scale) + zero_point, lowest, r); (q - zero_point) * scale, with r = 2^(bits - 1) - 1
    if signed, else 2^bits - 1. The lowest level is 0 if unsigned, -r if symmetric, else -r - 1.
    Shapes: `zero_point` and `scale` broadcast to x, aligned at the first axis.
    Domain: scale > 0. Ties are rounded up, as by `round`.
    Source: NNEF 1.0.5, Quantisation operations.
    """
    x, zero, step = aligned(x, zero_point, scale)
    top = 2 ** (bits - 1) - 1 if signed else 2**bits - 1
    bottom = (-top if symmetric else -top - 1) if signed else 0
    level = np.clip(round_half_up(np.asarray(x / step)) + zero, bottom, top)
    return (level - zero) * step


@defines("logarithmic_quantize")
def logarithmic_quantize(x: NDArray[Any], max: NDArray[Any], bits: int) -> NDArray[Any]:
    """Return x with its magnitude rounded to a power of two.

    Formula: with m = ceil(log2(max)) and r = 2^bits - 1: sign(x) * 2^round(clamp(log2(|x|), m - r, m)).
    Shapes: `max` broadcasts to x, aligned at the first axis.
    Domain: max > 0.
    Special values: 0 stays 0.
    Source: NNEF 1.0.5, Quantisation operations.
    """
    x, largest = aligned(x, max)
    top = np.ceil(np.log2(largest))
    exponent = np.clip(np.log2(np.abs(x)), top - (2**bits - 1), top)
    return np.sign(x) * np.exp2(round_half_up(np.asarray(exponent)))
