"""Greatest common divisors and least common multiples, by Euclid's algorithm with the most steps a dtype can need."""

from __future__ import annotations

import torch
from torch import Tensor

from t2n_core.torch_graph.simplify.decompositions import decomposition

_STEPS = {torch.uint8: 12, torch.int8: 10, torch.int16: 22, torch.int32: 45, torch.int64: 91}
"""Divisions that two consecutive Fibonacci numbers of the dtype, the worst case, need to reach zero."""


@decomposition("aten::gcd")
def gcd(self: Tensor, other: Tensor) -> Tensor:
    """Return the greatest common divisor, |x| for zero and x; negative only with the least integer.

    The least integer has no absolute value. Its remainders keep the sign of the dividend, as in C.
    """
    dtype = torch.promote_types(self.dtype, other.dtype)
    a: Tensor = self.to(dtype).abs() + torch.zeros_like(other, dtype=dtype)
    b: Tensor = other.to(dtype).abs() + torch.zeros_like(self, dtype=dtype)
    for _ in range(_STEPS[dtype]):
        done = b == 0
        a, b = torch.where(done, a, b), torch.where(done, b, torch.fmod(a, torch.where(done, 1, b)))
    return a


@decomposition("aten::lcm")
def lcm(self: Tensor, other: Tensor) -> Tensor:
    """Return the least common multiple, never negative; zero if either argument is zero."""
    divisor = gcd(self, other)
    return (self // torch.where(divisor == 0, 1, divisor) * other).abs()
