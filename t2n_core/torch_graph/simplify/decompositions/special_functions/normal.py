"""Functions around the normal distribution, in float64."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from t2n_core.torch_graph.simplify.decompositions import decomposition
from t2n_core.torch_graph.simplify.decompositions.special_functions.bessel import result_dtype, wide
from t2n_core.torch_graph.simplify.decompositions.special_functions.fitting import Series

_TAIL = 0.025
"""Probability below which the quantile is computed from the logarithm of the probability."""
_FAR = 40.0
"""sqrt(-2 log p) of the smallest float64."""


def _mp() -> Any:
    import mpmath

    return mpmath


def _erfcx(x: Any) -> Any:
    return _mp().exp(x * x) * _mp().erfc(x)


def _normal_quantile(p: Any) -> Any:
    """Return the quantile of a probability, by Newton's method on its logarithm, which is smooth far into the tail."""
    mp = _mp()
    x = -mp.sqrt(-2 * mp.log(p)) if p < 0.1 else mp.mpf(0)
    for _ in range(60):
        value = mp.erfc(-x / mp.sqrt(2)) / 2
        step = (mp.log(value) - mp.log(p)) * value / (mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi))
        x -= step
        if abs(step) < mp.mpf(10) ** -25:
            break
    return x


_SCALED = Series(lambda u: _erfcx(4 * (1 - u) / u) / u, 0.0, 1.0, 28)
_CENTRE = Series(lambda s: _normal_quantile(0.5 - _mp().sqrt(s)) / -_mp().sqrt(s), 0.0, (0.5 - _TAIL) ** 2, 34)
_TAILS = Series(lambda r: -_normal_quantile(_mp().exp(-r * r / 2)), math.sqrt(-2 * math.log(_TAIL)), _FAR, 34)


def erfcx(x: Tensor) -> Tensor:
    """exp(x²) erfc(x) of float64."""
    size = x.abs()
    u = 4 / (4 + size)
    right = _SCALED(u) * u
    return torch.where(x < 0, 2 * (x * x).exp() - right, right)


@decomposition("aten::special_erfcx")
def special_erfcx(self: Tensor) -> Tensor:
    return erfcx(wide(self)).to(result_dtype(self))


@decomposition("aten::special_log_ndtr")
def special_log_ndtr(self: Tensor) -> Tensor:
    x = wide(self)
    t = x * math.sqrt(0.5)
    left = (erfcx(-t) / 2).log() - t * t
    right = torch.log1p(-((-t * t).exp() * erfcx(t)) / 2)
    return torch.where(x < -1, left, torch.where(x == math.inf, 0.0, right)).to(result_dtype(self))


@decomposition("aten::special_ndtri")
def special_ndtri(self: Tensor) -> Tensor:
    p = wide(self)
    q = p - 0.5
    nearer = torch.minimum(p, 1 - p)
    tail = _TAILS((-2 * nearer.log()).sqrt())
    tail = torch.where(nearer == 0, math.inf, tail)
    signed = torch.where(q < 0, -tail, tail)
    quantiles = torch.where(nearer > _TAIL, q * _CENTRE(q * q), signed)
    return torch.where(nearer < 0, math.nan, quantiles).to(result_dtype(self))
