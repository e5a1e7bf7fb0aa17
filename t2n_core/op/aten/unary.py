"""Functions of one tensor, element by element. Integers are computed in the captured float dtype, as PyTorch does."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import BOOL, FLOAT32, Value
from t2n_core.op import formulas
from t2n_core.op.promote import wide_input
from t2n_core.op.registry import op

Formula = Callable[[Emitter, Value], Value]


def _formula(formula: Formula, *keys: str) -> None:
    """Register a function of a float: float16 is computed in float32, and every result is rounded once."""

    @op(*keys)
    def rule(g: Emitter, self: Value) -> Value:
        return g.cast(formula(g, wide_input(g, self)), g.output.dtype)

    rule.__doc__ = formula.__doc__


def _native(operator: str) -> Formula:
    return lambda g, x: g.call(operator, x)[0]


def _scaled_log(base: float) -> Formula:
    """Return the logarithm to an integer base; exact for powers of that base if a decision depends on the result."""

    def formula(g: Emitter, x: Value) -> Value:
        if not g.node.exact:
            return g.mul(g.log(x), 1 / math.log(base))
        wide = g.cast(x, g.widest)
        value = g.mul(g.log(wide), 1 / math.log(base))
        integer = formulas.round_even(g, value)
        return g.cast(g.select(g.eq(g.pow(base, integer), wide), integer, value), x.dtype)

    return formula


def _times(factor: float) -> Formula:
    return lambda g, x: g.mul(x, factor)


def _erfinv(g: Emitter, x: Value) -> Value:
    """Return the inverse of erf by two polynomials (Giles, "Approximating the erfinv function", 2011)."""
    central = [2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
               -0.00417768164, 0.246640727, 1.50140941]  # fmt: skip
    tail = [-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
            0.00943887047, 1.00167406, 2.83297682]  # fmt: skip
    w = g.neg(g.log(g.mul(g.sub(1.0, x), g.add(x, 1.0))))
    inner, outer = g.sub(w, 2.5), g.sub(g.sqrt(w), 3.0)
    inner, outer = formulas.polynomial(g, inner, central), formulas.polynomial(g, outer, tail)
    value = g.mul(g.select(g.lt(w, 5.0), inner, outer), x)
    return g.select(g.eq(formulas.absolute(g, x), 1.0), g.mul(x, math.inf), value)


def _sinc(g: Emitter, x: Value) -> Value:
    """sin(pi x) / (pi x), 1 at 0 and at numbers so small that the engine may take them for 0."""
    angle = g.mul(x, math.pi)
    is_small = g.lt(formulas.absolute(g, x), 2 * float(np.finfo(x.dtype).tiny))
    return g.select(is_small, 1.0, g.div(g.sin(angle), angle))


_NATIVE = "exp log sin cos tan asin acos atan sinh cosh asinh acosh atanh sqrt rsqrt"
for _name in _NATIVE.split():
    _torch = _name if not _name.startswith("a") else f"arc{_name[1:]}"
    _keys = [f"aten::{_name}", f"prims::{_name}"]
    if _torch != _name:
        _keys.append(f"aten::{_torch}")
    _formula(_native(_name), *_keys)

_formula(formulas.tanh, "aten::tanh", "prims::tanh")
_formula(lambda g, x: g.recip(x), "aten::reciprocal", "prims::reciprocal")
_formula(formulas.sigmoid, "aten::sigmoid", "aten::special_expit")
_formula(formulas.erf, "aten::erf", "prims::erf", "aten::special_erf")
_formula(formulas.erfc, "aten::erfc", "prims::erfc", "aten::special_erfc")
_formula(formulas.log1p, "aten::log1p", "prims::log1p", "aten::special_log1p")
_formula(formulas.expm1, "aten::expm1", "prims::expm1", "aten::special_expm1")
_formula(lambda g, x: g.pow(2.0, x), "aten::exp2", "prims::exp2", "aten::special_exp2")
_formula(_scaled_log(2.0), "aten::log2", "prims::log2")
_formula(_scaled_log(10.0), "aten::log10", "prims::log10")
_formula(_times(math.pi / 180), "aten::deg2rad")
_formula(_times(180 / math.pi), "aten::rad2deg")
_formula(_sinc, "aten::sinc", "aten::special_sinc")
_formula(_erfinv, "aten::erfinv", "prims::erf_inv", "aten::special_erfinv")


def _exact(formula: Formula, *keys: str, integers: bool = True) -> None:
    """Register a function that keeps the dtype. Without `integers` it returns integers and booleans unchanged."""

    @op(*keys)
    def rule(g: Emitter, self: Value) -> Value:
        return formula(g, self) if integers or self.dtype.kind == "f" else self

    rule.__doc__ = formula.__doc__


def _through_float32(formula: Formula) -> Formula:
    """Return a formula that computes float16 in float32, exactly; before 0.21 float16 has no rounding operators."""

    def wide(g: Emitter, x: Value) -> Value:
        if x.dtype != np.float16:
            return formula(g, x)
        return g.cast(formula(g, g.cast(x, FLOAT32)), x.dtype)

    return wide


def _sign(g: Emitter, x: Value) -> Value:
    return formulas.sign(g, x)


def _square(g: Emitter, x: Value) -> Value:
    factor = g.cast(x, g.output.dtype)  # the square of a boolean is an integer
    return formulas.product(g, factor, factor)


_exact(formulas.absolute, "aten::abs", "aten::absolute", "prims::abs")
_exact(formulas.negative, "aten::neg", "aten::negative", "prims::neg")
_exact(_through_float32(_sign), "aten::sign", "aten::sgn", "prims::sign")
_exact(_square, "aten::square")
_exact(_through_float32(lambda g, x: g.floor(x)), "aten::floor", "prims::floor", integers=False)
_exact(_through_float32(lambda g, x: g.ceil(x)), "aten::ceil", "prims::ceil", integers=False)
_exact(_through_float32(formulas.truncate), "aten::trunc", "aten::fix", "prims::trunc", integers=False)
_exact(_through_float32(formulas.round_even), "prims::round", integers=False)


@op("aten::frac")
def frac(g: Emitter, self: Value) -> Value:
    """x - trunc(x)."""
    return g.sub(self, _through_float32(formulas.truncate)(g, self))


@op("aten::round", "aten::special_round")
def round(g: Emitter, self: Value, decimals: int = 0) -> Value:
    """Round ties to even; with `decimals`, as PyTorch: scaled, rounded, scaled back."""
    if self.dtype.kind != "f":
        if decimals < 0:
            raise g.fail("rounding integers to tens is not supported yet")
        return self
    x = wide_input(g, self)
    scale = 10.0 ** abs(decimals)
    if decimals > 0:
        x = g.div(formulas.round_even(g, g.mul(x, scale)), scale)
    elif decimals < 0:
        x = g.mul(formulas.round_even(g, g.quotient(x, scale)), scale)
    else:
        x = formulas.round_even(g, x)
    return g.cast(x, g.output.dtype)


def _never(g: Emitter, x: Value) -> Value:
    """Return False everywhere, the result of tests such as isnan for integers."""
    return g.cast(g.mul(g.cast(x, np.dtype(np.uint8)), 0), BOOL)


def _test(formula: Formula, *keys: str, otherwise: bool = False) -> None:
    """Register a test of floats; for all integers its result is `otherwise`."""

    @op(*keys)
    def rule(g: Emitter, self: Value) -> Value:
        if self.dtype.kind != "f":
            return g.not_(_never(g, self)) if otherwise else _never(g, self)
        return formula(g, g.cast(self, FLOAT32) if self.dtype == np.float16 else self)

    rule.__doc__ = formula.__doc__


def _is(number: float) -> Formula:
    return lambda g, x: g.eq(x, number)


_test(formulas.is_nan, "aten::isnan")
_test(lambda g, x: g.eq(formulas.absolute(g, x), math.inf), "aten::isinf")
_test(_is(math.inf), "aten::isposinf")
_test(_is(-math.inf), "aten::isneginf")
_test(lambda g, x: g.lt(formulas.absolute(g, x), math.inf), "aten::isfinite", "prims::isfinite", otherwise=True)


@op("aten::isreal")
def isreal(g: Emitter, self: Value) -> Value:
    return g.not_(_never(g, self))


@op("aten::signbit")
def signbit(g: Emitter, self: Value) -> Value:
    return formulas.sign_bit(g, g.cast(self, FLOAT32) if self.dtype == np.float16 else self)


@op("aten::bitwise_not", "prims::bitwise_not")
def bitwise_not(g: Emitter, self: Value) -> Value:
    """Return the logical not for booleans, the bitwise not for integers."""
    if self.dtype == BOOL:
        return g.not_(self)
    return g.tract_core_bitnot(self)


@op("aten::logical_not")
def logical_not(g: Emitter, self: Value) -> Value:
    return g.not_(g.cast(self, BOOL))


@op("aten::nan_to_num")
def nan_to_num(
    g: Emitter, self: Value, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Value:
    """Replace NaN by 0 and infinities by the largest finite values of the dtype, unless others are passed."""
    if self.dtype.kind != "f":
        return self
    limits = np.finfo(self.dtype)
    x = g.cast(self, FLOAT32) if self.dtype == np.float16 else self
    low = float(limits.min) if neginf is None else neginf
    high = float(limits.max) if posinf is None else posinf
    y = g.select(formulas.is_nan(g, x), nan or 0.0, x)
    y = g.select(g.eq(x, math.inf), high, y)
    return g.cast(g.select(g.eq(x, -math.inf), low, y), self.dtype)


@op("aten::logit", "aten::special_logit")
def logit(g: Emitter, self: Value, eps: float | None = None) -> Value:
    """log(x / (1 - x)), x kept within [eps, 1 - eps] if eps is given."""
    x = wide_input(g, self)
    if eps is not None:
        x = formulas.minimum(g, formulas.maximum(g, x, eps), 1 - eps)
    return g.cast(g.log(g.div(x, g.sub(1.0, x))), g.output.dtype)


@op("aten::special_entr")
def special_entr(g: Emitter, self: Value) -> Value:
    """-x log(x); 0 at 0, -inf below."""
    x = wide_input(g, self)
    inside = g.neg(g.mul(x, g.log(x)))
    value = g.select(g.eq(x, 0.0), 0.0, g.select(g.lt(x, 0.0), -math.inf, inside))
    return g.cast(value, g.output.dtype)
