"""Arithmetic of complex numbers, computed on their real and imaginary parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from t2n_core.torch_graph.simplify.complex_pairs import Operand, Pair, as_pair, on_pairs
from t2n_core.torch_graph.simplify.decompositions import Refusal


@on_pairs("aten::view_as_complex")
def view_as_complex(self: Tensor) -> Pair:
    return Pair(self.select(-1, 0), self.select(-1, 1))


@on_pairs("aten::view_as_real")
def view_as_real(self: Pair) -> Tensor:
    return torch.stack([self.re, self.im], -1)


@on_pairs("aten::complex")
def complex_(real: Tensor, imag: Tensor) -> Pair:
    return Pair(*torch.broadcast_tensors(real, imag))  # type: ignore[no-untyped-call]


@on_pairs("aten::polar")
def polar(abs: Tensor, angle: Tensor) -> Pair:
    return Pair(abs * angle.cos(), abs * angle.sin())


@on_pairs("aten::real")
def real(self: Pair) -> Tensor:
    return self.re  # type: ignore[no-any-return]


@on_pairs("aten::imag")
def imag(self: Pair) -> Tensor:
    return self.im  # type: ignore[no-any-return]


@on_pairs("aten::_conj", "aten::conj_physical")
def conj(self: Pair) -> Pair:
    return Pair(self.re, -self.im)


@on_pairs("aten::abs")
def abs_(self: Pair) -> Tensor:
    return torch.hypot(self.re, self.im)


@on_pairs("aten::angle")
def angle(self: Pair) -> Tensor:
    return torch.atan2(self.im, self.re)


@on_pairs("aten::add.Tensor", "aten::add.Scalar")
def add(self: Operand, other: Operand, alpha: complex = 1) -> Pair:
    a, b = as_pair(self), _scaled(other, alpha)
    return Pair(a.re + b.re, a.im + b.im)


@on_pairs("aten::sub.Tensor", "aten::sub.Scalar")
def sub(self: Operand, other: Operand, alpha: complex = 1) -> Pair:
    a, b = as_pair(self), _scaled(other, alpha)
    return Pair(a.re - b.re, a.im - b.im)


@on_pairs("aten::rsub")
def rsub(self: Operand, other: Operand, alpha: complex = 1) -> Pair:
    return sub(other, self, alpha)


def _scaled(operand: Operand, alpha: complex) -> Pair:
    return as_pair(operand) if alpha == 1 else mul(operand, alpha)


def _bilinear(product: Callable[[Any, Any], Any]) -> Callable[[Operand, Operand], Pair]:
    """Return a function of two factors, by four real products, or two if one factor is real."""

    def multiply(self: Operand, other: Operand) -> Pair:
        if not _is_complex(other):
            a = as_pair(self)
            return Pair(product(a.re, other), product(a.im, other))
        if not _is_complex(self):
            b = as_pair(other)
            return Pair(product(self, b.re), product(self, b.im))
        a, b = as_pair(self), as_pair(other)
        return Pair(product(a.re, b.re) - product(a.im, b.im), product(a.re, b.im) + product(a.im, b.re))

    return multiply


def _is_complex(operand: Operand) -> bool:
    return isinstance(operand, Pair | complex)


mul = on_pairs("aten::mul.Tensor", "aten::mul.Scalar")(_bilinear(lambda a, b: a * b))
for _name in ("mm", "bmm", "mv", "matmul", "dot", "outer"):
    on_pairs(f"aten::{_name}")(_bilinear(getattr(torch, _name)))


@on_pairs("aten::div.Tensor", "aten::div.Scalar")
def div(self: Operand, other: Operand) -> Pair:
    if not _is_complex(other):
        a = as_pair(self)
        return Pair(a.re / other, a.im / other)
    return mul(self, reciprocal(as_pair(other)))


@on_pairs("aten::reciprocal")
def reciprocal(self: Pair) -> Pair:
    """conj(z) / |z|², scaled by the larger part so that squares neither overflow nor underflow (Smith, 1962)."""
    if not isinstance(self.re, Tensor):
        inverse = 1 / complex(self.re, self.im)
        return Pair(inverse.real, inverse.imag)
    scale = torch.maximum(self.re.abs(), self.im.abs())
    re, im = self.re / scale, self.im / scale
    size = (re * re + im * im) * scale
    return Pair(re / size, -im / size)


@on_pairs("aten::sgn")
def sgn(self: Pair) -> Pair:
    size = abs_(self)
    scale = torch.where(size == 0, torch.zeros_like(size), 1 / size)
    return Pair(self.re * scale, self.im * scale)


@on_pairs("aten::exp")
def exp(self: Pair) -> Pair:
    return polar(self.re.exp(), self.im)


@on_pairs("aten::log")
def log(self: Pair) -> Pair:
    return Pair(abs_(self).log(), angle(self))


@on_pairs("aten::square")
def square(self: Pair) -> Pair:
    return Pair(self.re * self.re - self.im * self.im, 2 * self.re * self.im)


@on_pairs("aten::pow.Tensor_Scalar")
def pow_(self: Pair, exponent: complex) -> Pair:
    """Return a power; integer powers by products, so that 0 stays 0."""
    if exponent != int(complex(exponent).real) or not 1 <= complex(exponent).real <= MOST_PRODUCTS:
        raise Refusal(
            f"the power {exponent} of a complex number: only integers from 1 to {MOST_PRODUCTS} are supported"
        )
    power = self
    for _ in range(int(complex(exponent).real) - 1):
        power = mul(power, self)
    return power


MOST_PRODUCTS = 8


@on_pairs("aten::linalg_vector_norm")
def linalg_vector_norm(self: Pair, *arguments: Any, **keywords: Any) -> Tensor:
    return torch.linalg.vector_norm(abs_(self), *arguments, **keywords)  # type: ignore[no-any-return]


@on_pairs("aten::isnan")
def isnan(self: Pair) -> Tensor:
    return self.re.isnan() | self.im.isnan()  # type: ignore[no-any-return]


@on_pairs("aten::isinf")
def isinf(self: Pair) -> Tensor:
    return self.re.isinf() | self.im.isinf()  # type: ignore[no-any-return]


@on_pairs("aten::eq.Tensor", "aten::eq.Scalar")
def eq(self: Operand, other: Operand) -> Tensor:
    a, b = as_pair(self), as_pair(other)
    return (a.re == b.re) & (a.im == b.im)  # type: ignore[no-any-return]


@on_pairs("aten::ne.Tensor", "aten::ne.Scalar")
def ne(self: Operand, other: Operand) -> Tensor:
    return ~eq(self, other)
