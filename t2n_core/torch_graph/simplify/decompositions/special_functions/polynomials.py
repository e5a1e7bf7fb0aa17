"""Chebyshev polynomials whose order is a tensor: closed forms, in float64."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from t2n_core.torch_graph.simplify.decompositions import decomposition

Operand = Tensor | float


def _first(x: Tensor, n: Tensor) -> Tensor:
    """T: cos(n acos x), and its continuation beyond 1."""
    return _even_or_odd(x, n, (n * _angle(x)).cos(), lambda r: ((n * r).exp() + (-n * r).exp()) / 2)


def _second(x: Tensor, n: Tensor) -> Tensor:
    """U: sin((n + 1) acos x) / sin(acos x)."""
    m, angle, size = n + 1, _angle(x), x.abs()
    inside = torch.where(size == 1, m, (m * angle).sin() / angle.sin())
    return _even_or_odd(x, n, inside, lambda r: ((m * r).exp() - (-m * r).exp()) / (r.exp() - (-r).exp()))


def _angle(x: Tensor) -> Tensor:
    return x.abs().clamp(max=1.0).acos()


def _even_or_odd(x: Tensor, n: Tensor, inside: Tensor, outside: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the values at x from the values at |x|: polynomials of even order are even, of odd order odd."""
    size = x.abs()
    growth = (size + (size * size - 1).clamp(min=0.0).sqrt()).log()
    value = torch.where(size <= 1, inside, outside(growth))
    odd = n - 2 * (n / 2).floor()
    return torch.where((x < 0) & (odd == 1), -value, value)


def _third(x: Tensor, n: Tensor) -> Tensor:
    return _second(x, n) - _second(x, n - 1)


def _fourth(x: Tensor, n: Tensor) -> Tensor:
    return _second(x, n) + _second(x, n - 1)


def _register(letter: str, polynomial: Callable[[Tensor, Tensor], Tensor], shifted: bool) -> None:
    def rule(x: Operand, n: Operand) -> Tensor:
        values = torch.promote_types(*(_dtype(v) for v in (x, n)))
        a, order = _wide(x), _wide(n).trunc()
        result = polynomial(2 * a - 1 if shifted else a, order)
        return torch.where(order < 0, 0.0, result).to(values)

    decomposition(f"aten::special_{'shifted_' if shifted else ''}chebyshev_polynomial_{letter}")(rule)


def _dtype(v: Operand) -> torch.dtype:
    if isinstance(v, Tensor) and v.is_floating_point():
        return v.dtype
    # an integer tensor counts as the default dtype, a Python number as a dtype any other operand widens
    return torch.get_default_dtype() if isinstance(v, Tensor) else torch.float16


def _wide(v: Operand) -> Tensor:
    return v.to(torch.float64) if isinstance(v, Tensor) else torch.scalar_tensor(v, dtype=torch.float64)


for _letter, _polynomial in (("t", _first), ("u", _second), ("v", _third), ("w", _fourth)):
    for _shifted in (False, True):
        _register(_letter, _polynomial, _shifted)
