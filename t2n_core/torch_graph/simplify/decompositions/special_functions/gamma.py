"""Derivatives of digamma, in float64."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from t2n_core.torch_graph.simplify.decompositions import Refusal, decomposition
from t2n_core.torch_graph.simplify.decompositions.special_functions.bessel import result_dtype, wide

_SHIFT = 12
"""Terms that are summed one by one before the asymptotic series takes the rest."""
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
_MOST = 20


def _hurwitz(power: int, x: Tensor) -> Tensor:
    """Return the sum of (x + k)^-power over k >= 0, for x > 0, by Euler's and Maclaurin's formula."""
    total = torch.zeros_like(x)
    for k in range(_SHIFT):
        total = total + (x + k) ** -power
    far = x + _SHIFT
    total = total + far ** (1 - power) / (power - 1) + far**-power / 2
    factor = float(power)
    for k, bernoulli in enumerate(_BERNOULLI, 1):
        total = total + far ** (-power - 2 * k + 1) * (bernoulli * factor / math.factorial(2 * k))
        factor *= (power + 2 * k - 1) * (power + 2 * k)
    return total


def _cotangent_derivative(order: int) -> list[int]:
    """Return the derivative's coefficients in powers of c = cot(t): each order multiplies dP/dc by -(1 + c²)."""
    polynomial = [0, 1]
    for _ in range(order):
        slope = [k * a for k, a in enumerate(polynomial)][1:]
        polynomial = [-(a + b) for a, b in zip([*slope, 0, 0], [0, 0, *slope], strict=True)]
    return polynomial


@decomposition("aten::polygamma")
def polygamma(n: int, self: Tensor) -> Tensor:
    if n == 0:
        return torch.digamma(self)
    if n > _MOST:
        raise Refusal(f"polygamma of order {n} is beyond {_MOST}, where intermediate results overflow in float64")
    x = wide(self)
    negative = x < 0
    right = (-1.0) ** (n + 1) * math.factorial(n) * _hurwitz(n + 1, torch.where(negative, 1 - x, x))
    turn = math.pi * (x - x.round())  # exact near integers, where the cotangent is large
    cotangent = turn.cos() / turn.sin()
    bent = torch.zeros_like(x)
    for coefficient in reversed(_cotangent_derivative(n)):
        bent = bent * cotangent + coefficient
    left = (-1.0) ** n * right - math.pi ** (n + 1) * bent
    values = torch.where(negative, left, right)
    is_pole = (x <= 0) & (x == x.round())
    return torch.where(is_pole, math.inf if n % 2 else -math.inf, values).to(result_dtype(self))
