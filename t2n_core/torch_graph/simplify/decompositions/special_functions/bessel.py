"""Bessel and Airy functions, in float64: a series near zero, and one of the asymptotic form's slow part beyond."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from t2n_core.torch_graph.simplify.decompositions import decomposition
from t2n_core.torch_graph.simplify.decompositions.special_functions.fitting import Series

NEAR = 8.0
_NEAR_K = 2.0
_AIRY = 6.0


def _mp() -> Any:
    import mpmath

    return mpmath


def wide(x: Tensor) -> Tensor:
    return x.to(torch.float64)


def result_dtype(x: Tensor) -> torch.dtype:
    return x.dtype if x.is_floating_point() else torch.get_default_dtype()


class _ModifiedI:
    """exp(-x) I(order, x) for x >= 0."""

    def __init__(self, order: int) -> None:
        self.near = Series(lambda x: _mp().besseli(order, x) * _mp().exp(-x), 0.0, NEAR, 30)
        self.far = Series(lambda u: self._scaled(order, NEAR / u), 0.0, 1.0, 20)

    @staticmethod
    def _scaled(order: int, x: Any) -> Any:
        return _mp().besseli(order, x) * _mp().exp(-x) * _mp().sqrt(x)

    def __call__(self, x: Tensor) -> Tensor:
        return torch.where(x <= NEAR, self.near(x), self.far(NEAR / x) / x.sqrt())


class _ModifiedK:
    """exp(x) K(order, x) for x > 0: near zero, a smooth function plus a logarithm times I, and a pole for order 1."""

    def __init__(self, order: int, i: _ModifiedI) -> None:
        self.order, self.i = order, i
        self.sign = -1 if order == 0 else 1
        self.near = Series(self._smooth, 0.0, _NEAR_K, 20)
        self.far = Series(lambda u: self._scaled(_NEAR_K / u), 0.0, 1.0, 26)

    def _smooth(self, x: Any) -> Any:
        mp = _mp()
        pole = 1 / x if self.order else 0
        return mp.besselk(self.order, x) - self.sign * mp.log(x / 2) * mp.besseli(self.order, x) - pole

    def _scaled(self, x: Any) -> Any:
        return _mp().besselk(self.order, x) * _mp().exp(x) * _mp().sqrt(x)

    def __call__(self, x: Tensor) -> Tensor:
        growth = x.exp()
        near = self.near(x) + self.sign * (x / 2).log() * self.i(x) * growth
        near = (near + 1 / x if self.order else near) * growth
        values = torch.where(x <= _NEAR_K, near, self.far(_NEAR_K / x) / x.sqrt())
        values = torch.where(x == 0, math.inf, values)
        return torch.where(x < 0, math.nan, values)


class _Plain:
    """J and Y of one order, for x >= 0; far out both are a slowly varying amplitude and phase."""

    def __init__(self, order: int) -> None:
        self.order, self.shift = order, math.pi / 4 + order * math.pi / 2
        self.near_j = Series(lambda x: _mp().besselj(order, x), 0.0, NEAR, 30)
        self.near_y = Series(self._smooth_y, 0.0, NEAR, 32)
        self.even = Series(lambda u: self._parts(NEAR / u)[0], 0.0, 1.0, 20)
        self.odd = Series(lambda u: self._parts(NEAR / u)[1], 0.0, 1.0, 20)

    def _smooth_y(self, x: Any) -> Any:
        mp = _mp()
        pole = 1 / x if self.order else 0
        return mp.bessely(self.order, x) - 2 / mp.pi * (mp.log(x) * mp.besselj(self.order, x) - pole)

    def _parts(self, x: Any) -> tuple[Any, Any]:
        mp = _mp()
        phase = x - mp.pi / 4 - self.order * mp.pi / 2
        j, y, scale = mp.besselj(self.order, x), mp.bessely(self.order, x), mp.sqrt(mp.pi * x / 2)
        return scale * (j * mp.cos(phase) + y * mp.sin(phase)), scale * (y * mp.cos(phase) - j * mp.sin(phase))

    def j(self, x: Tensor) -> Tensor:
        u, phase = NEAR / x, x - self.shift
        far = (2 / (math.pi * x)).sqrt() * (self.even(u) * phase.cos() - self.odd(u) * phase.sin())
        return torch.where(x <= NEAR, self.near_j(x), far)

    def y(self, x: Tensor) -> Tensor:
        u, phase = NEAR / x, x - self.shift
        far = (2 / (math.pi * x)).sqrt() * (self.even(u) * phase.sin() + self.odd(u) * phase.cos())
        product = x.log() * self.near_j(x)
        near = self.near_y(x) + 2 / math.pi * (product - 1 / x if self.order else product)
        values = torch.where(x <= NEAR, near, far)
        values = torch.where(x == 0, -math.inf, values)
        return torch.where(x < 0, math.nan, values)


_I = (_ModifiedI(0), _ModifiedI(1))
_K = (_ModifiedK(0, _I[0]), _ModifiedK(1, _I[1]))
_PLAIN = (_Plain(0), _Plain(1))


def _register_order(order: int) -> None:
    def odd(x: Tensor, value: Tensor) -> Tensor:
        return torch.where(x < 0, -value, value) if order else value

    def i_scaled(self: Tensor) -> Tensor:
        x = wide(self)
        return odd(x, _I[order](x.abs())).to(result_dtype(self))

    def i(self: Tensor) -> Tensor:
        x = wide(self)
        return odd(x, _I[order](x.abs()) * x.abs().exp()).to(result_dtype(self))

    def k_scaled(x: Tensor) -> Tensor:
        return _K[order](wide(x)).to(result_dtype(x))

    def k(self: Tensor) -> Tensor:
        x = wide(self)
        return (_K[order](x) * (-x).exp()).to(result_dtype(self))

    def j(self: Tensor) -> Tensor:
        x = wide(self)
        return odd(x, _PLAIN[order].j(x.abs())).to(result_dtype(self))

    def y(self: Tensor) -> Tensor:
        return _PLAIN[order].y(wide(self)).to(result_dtype(self))

    decomposition(f"aten::special_i{order}e")(i_scaled)
    decomposition("aten::i0" if order == 0 else "aten::special_i1", f"aten::special_modified_bessel_i{order}")(i)
    decomposition(f"aten::special_scaled_modified_bessel_k{order}")(k_scaled)
    decomposition(f"aten::special_modified_bessel_k{order}")(k)
    decomposition(f"aten::special_bessel_j{order}")(j)
    decomposition(f"aten::special_bessel_y{order}")(y)


_register_order(0)
_register_order(1)


def _zeta(x: Any) -> Any:
    return 2 * abs(x) * _mp().sqrt(abs(x)) / 3


def _from_zeta(u: Any) -> Any:
    return (3 / (2 * u)) ** (_mp().mpf(2) / 3)


def _wave(u: Any, part: int) -> Any:
    """Return the two slowly varying parts of Ai and Bi on the negative side, at zeta = 1 / u."""
    mp, x = _mp(), _from_zeta(u)
    phase = _zeta(x) + mp.pi / 4
    ai, bi, scale = mp.airyai(-x), mp.airybi(-x), mp.sqrt(mp.pi) * mp.root(x, 4)
    return scale * (ai * mp.sin(phase) + bi * mp.cos(phase) if part == 0 else bi * mp.sin(phase) - ai * mp.cos(phase))


def _decay(u: Any) -> Any:
    x = _from_zeta(u)
    return _mp().airyai(x) * _mp().exp(_zeta(x)) * _mp().root(x, 4)


_AIRY_NEAR = Series(lambda x: _mp().airyai(x), -_AIRY, 1.0, 34)
_AIRY_RIGHT = Series(_decay, 0.0, 1.5, 26)
_AIRY_LEFT = tuple(Series(lambda u, p=part: _wave(u, p), 0.0, 0.11, 12) for part in (0, 1))  # type: ignore[misc]


@decomposition("aten::special_airy_ai")
def special_airy_ai(x: Tensor) -> Tensor:
    a = wide(x)
    size = a.abs()
    zeta = size * size.sqrt() * (2 / 3)
    root = size.sqrt().sqrt()
    phase = zeta + math.pi / 4
    u = 1 / zeta
    left = (_AIRY_LEFT[0](u) * phase.sin() - _AIRY_LEFT[1](u) * phase.cos()) / (math.sqrt(math.pi) * root)
    right = _AIRY_RIGHT(u) * (-zeta).exp() / root
    airy = torch.where(a > 1, right, torch.where(a < -_AIRY, left, _AIRY_NEAR(a)))
    return torch.where(size == math.inf, math.nan, airy).to(result_dtype(x))


@decomposition("aten::special_spherical_bessel_j0")
def special_spherical_bessel_j0(x: Tensor) -> Tensor:
    a = wide(x)
    values = torch.where(a == 0, 1.0, a.sin() / a)
    return torch.where(a.abs() == math.inf, 0.0, values).to(result_dtype(x))
