"""Activation functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t2n_core.dialect.meaning.broadcasting import aligned
from t2n_core.dialect.registry import defines


@defines("relu")
def relu(x: NDArray[Any]) -> NDArray[Any]:
    """Return max(x, 0).

    Special values: inf for inf, 0 for -inf; for NaN as `max`: 0.
    Source: NNEF 1.0.5, Activation operations.
    """
    return np.fmax(x, x.dtype.type(0))


@defines("sigmoid")
def sigmoid(x: NDArray[Any]) -> NDArray[Any]:
    """Return 1 / (1 + exp(-x)).

    Special values: 0 for -inf, 1 for inf.
    Source: NNEF 1.0.5, Activation operations.
    """
    return 1.0 / (1.0 + np.exp(-x))


@defines("silu")
def silu(x: NDArray[Any]) -> NDArray[Any]:
    """Return x * sigmoid(x).

    Special values: the limit 0 for -inf, inf for inf.
    Source: NNEF 1.0.5, Activation operations.
    """
    return np.where(np.isneginf(x), 0.0, x / (1.0 + np.exp(-x)))


@defines("tanh")
def tanh(x: NDArray[Any]) -> NDArray[Any]:
    """Return (exp(x) - exp(-x)) / (exp(x) + exp(-x)).

    Special values: -1 for -inf, 1 for inf, and no overflow in between.
    Source: NNEF 1.0.5, Activation operations.
    """
    return np.tanh(x)


@defines("softabs")
def softabs(x: NDArray[Any], epsilon: float) -> NDArray[Any]:
    """Return sqrt(x² + epsilon).

    Domain: epsilon >= 0; NaN where the sum is negative.
    Source: the Khronos parser's library and tract's nnef/stdlib.nnef; it is not in the text of NNEF 1.0.5.
    """
    return np.sqrt(x * x + epsilon)


@defines("softplus")
def softplus(x: NDArray[Any]) -> NDArray[Any]:
    """Return log(exp(x) + 1).

    Special values: x itself for large x, where exp(x) would overflow; 0 for -inf.
    Source: NNEF 1.0.5, Activation operations.
    """
    return np.logaddexp(x, 0.0)


@defines("elu")
def elu(x: NDArray[Any], alpha: float = 1.0) -> NDArray[Any]:
    """Return x where it is not negative, else alpha * (exp(x) - 1).

    Special values: -alpha for -inf; NaN stays. tract has no `alpha`: it is 1.
    Source: NNEF 1.0.5, Activation operations.
    """
    return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0.0)), x)


@defines("selu")
def selu(x: NDArray[Any], alpha: float = 1.67326319, lambda_: float = 1.05070102) -> NDArray[Any]:
    """Return lambda * x where x is not negative, else lambda * alpha * (exp(x) - 1).

    Special values: -lambda * alpha for -inf; NaN stays.
    Source: NNEF 1.0.5, Activation operations.
    """
    return lambda_ * elu(x, alpha)


@defines("gelu")
def gelu(x: NDArray[Any]) -> NDArray[Any]:
    """Return x * P(X <= x) for a standard normal X: x / 2 * (1 + erf(x / sqrt(2))).

    Special values: the limit 0 for -inf, inf for inf. The standard also allows x * sigmoid(1.702 * x), which differs by
    up to 0.02.
    Source: NNEF 1.0.5, Activation operations.
    """
    erfc = np.vectorize(math.erfc, otypes=[np.float64])(-x / math.sqrt(2.0))
    return np.where(np.isneginf(x), 0.0, x / 2.0 * erfc)


@defines("prelu")
def prelu(x: NDArray[Any], alpha: NDArray[Any]) -> NDArray[Any]:
    """Return x where it is not negative, else alpha * x.

    Shapes: alpha broadcasts to x, aligned at the first axis: [1, C] for a slope of each channel.
    Special values: NaN stays.
    Source: NNEF 1.0.5, Activation operations.
    """
    x, alpha = aligned(x, alpha)
    return np.where(x < 0, alpha * x, x)


@defines("leaky_relu")
def leaky_relu(x: NDArray[Any], alpha: float) -> NDArray[Any]:
    """Return x where it is not negative, else alpha * x.

    Special values: NaN stays.
    Source: NNEF 1.0.5, Activation operations.
    """
    return np.where(x < 0, alpha * x, x)


@defines("softmax")
def softmax(x: NDArray[Any], axes: list[int] | None = None) -> NDArray[Any]:
    """Return exp(x) divided by its sum over the axes, by default axis 1.

    Formula: e = exp(x - m), e / sum(e), where m is the largest x along the axes: without overflow.
    Shapes: same as x.
    Special values: 0 for -inf; NaN along the axes if all are -inf, one is inf, or one is NaN. No axes: 1 everywhere.
    Source: NNEF 1.0.5, Activation operations.
    """
    along = (1,) if axes is None else tuple(axes)
    grown = np.exp(x - np.max(x, axis=along, keepdims=True, initial=-np.inf))
    return grown / np.sum(grown, axis=along, keepdims=True)
