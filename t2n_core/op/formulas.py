"""Small formulas that every tract version computes correctly for every dtype; rules of all families use them.

Some versions lack `abs` of float64 (before 0.23), `sign` of integers (up to 0.23.8), `sigmoid`, `erf` and `round` of
float64, comparisons of bool and float16. `max` and `min` return the other operand if one is NaN, where PyTorch returns
the NaN: the option `keep_nan` adds the selections that restore it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from t2n_core.nnef.emitter import Emitter, Operand
from t2n_core.nnef.graph import BOOL, FLOAT32, FLOAT64, Value
from t2n_core.op.option_effects import use_option


def absolute(g: Emitter, x: Value) -> Value:
    if x.dtype.kind in "ub":
        return x
    if x.dtype == FLOAT64:
        return g.select(g.lt(x, 0.0), g.neg(x), g.add(x, 0.0))  # + 0 makes a zero positive
    return g.abs(x)


def negative(g: Emitter, x: Value) -> Value:
    """-x; unsigned integers wrap around as in PyTorch."""
    return g.sub(zero(g, x), x) if x.dtype.kind == "u" else g.neg(x)


def sign(g: Emitter, x: Value) -> Value:
    """-1, 0 or 1; 0 for NaN, as in PyTorch."""
    if x.dtype == BOOL:
        return x
    positive = g.cast(g.gt(x, 0), x.dtype)
    return positive if x.dtype.kind == "u" else g.sub(positive, g.cast(g.lt(x, 0), x.dtype))


def sign_bit(g: Emitter, x: Value) -> Value:
    """Return which elements are negative; -0.0 is, since its reciprocal is -inf."""
    if x.dtype.kind in "bu":
        return g.cast(g.mul(g.cast(x, np.dtype(np.uint8)), 0), BOOL)
    negative = g.lt(x, 0)
    return g.or_(negative, g.lt(g.recip(x), 0)) if x.dtype.kind == "f" else negative


def truncate(g: Emitter, x: Value) -> Value:
    """Return x rounded towards zero."""
    return g.select(g.lt(x, 0.0), g.ceil(x), g.floor(x))


def round_even(g: Emitter, x: Value) -> Value:
    """Return x rounded to the nearest integer, ties to even."""
    if x.dtype == FLOAT32 and g.spec.has("tract_core_round_even"):
        return g.tract_core_round_even(x)
    down = g.floor(x)
    rest = g.sub(x, down)
    odd = g.ne(g.mul(g.floor(g.mul(down, 0.5)), 2.0), down)
    up = g.or_(g.gt(rest, 0.5), g.and_(g.eq(rest, 0.5), odd))
    return g.select(up, g.add(down, 1.0), down)


def product_of(g: Emitter, x: Value, axes: list[int]) -> Value:
    """Return the product along axes, which are kept with size 1."""
    return g.tract_core_product_reduce(x, axes=axes) if axes else x


def sigmoid(g: Emitter, x: Value) -> Value:
    """Return the sigmoid of x: an exact one as a quotient, as the kernels of engines have an absolute error."""
    if x.dtype == FLOAT32 and not g.node.exact:
        return with_nan(g, g.sigmoid(x), x)
    return g.recip(g.add(g.exp(g.neg(x)), 1.0))


def tanh(g: Emitter, x: Value) -> Value:
    """Return the hyperbolic tangent of x: an exact one, unless it is small, is sgn(x) (1 - 2 / (exp(2 |x|) + 1))."""
    kernel = with_nan(g, g.tanh(x), x)
    if not g.node.exact:
        return kernel
    return _odd(g, x, kernel, lambda size: g.sub(1.0, g.mul(g.recip(g.add(g.exp(g.mul(size, 2.0)), 1.0)), 2.0)))


def _odd(g: Emitter, x: Value, small: Value, formula: Callable[[Value], Value]) -> Value:
    """Return an odd function of x: `small` where |x| < 0.5, and elsewhere `formula` of |x|, with the sign of x."""
    size = absolute(g, x)
    large = formula(size)
    return g.select(g.lt(size, 0.5), small, g.select(g.lt(x, 0.0), g.neg(large), large))


def erf(g: Emitter, x: Value) -> Value:
    """Return the error function of x: an exact one, unless it is small, is sgn(x) (1 - erfc(|x|))."""
    kernel = erf_kernel(g, x)
    return _odd(g, x, kernel, lambda size: g.sub(1.0, _erfc_of_positive(g, size))) if g.node.exact else kernel


def erfc(g: Emitter, x: Value) -> Value:
    """Return 1 - erf(x), with a relative error of 1e-7 (x² + 4) where it approaches 0."""
    return g.select(g.gt(x, 0.5), _erfc_of_positive(g, x), g.sub(1.0, erf_kernel(g, x)))


ERFC = (0.00476815678, 0.146369340, -0.768476284, 1.42319532, -1.08697411, 0.256724367, -0.180064472, 0.0957729876,
        0.374176025, 1.00002095, -1.26551221)  # fmt: skip
"""A Chebyshev fit of log(erfc(x) / t) + x² in powers of t = 1 / (1 + x / 2), the highest first; the error is 1e-7."""


def _erfc_of_positive(g: Emitter, x: Value) -> Value:
    t = g.recip(g.add(g.mul(x, 0.5), 1.0))
    return g.mul(t, g.exp(g.sub(polynomial(g, t, ERFC), g.mul(x, x))))


def polynomial(g: Emitter, x: Value, coefficients: Sequence[float]) -> Value:
    """Return the polynomial by Horner's scheme; the highest power comes first."""
    value = g.add(g.mul(x, coefficients[0]), coefficients[1])
    for coefficient in coefficients[2:]:
        value = g.add(g.mul(value, x), coefficient)
    return value


def erf_kernel(g: Emitter, x: Value) -> Value:
    """Return the error function of x; for float64 only with the precision of float32, since no version has more."""
    if not g.spec.has("tract_core_erf"):
        return _erf_of_primitives(g, x)
    return g.cast(g.tract_core_erf(g.cast(x, FLOAT32)), x.dtype)


ERF = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
"""Abramowitz and Stegun, 7.1.26, the highest power first; the error is below 1.5e-7."""


def _erf_of_primitives(g: Emitter, x: Value) -> Value:
    """1 - (a1 t + … + a5 t^5) exp(-x^2) with t = 1 / (1 + 0.3275911 |x|), with the sign of x."""
    size = absolute(g, x)
    t = g.recip(g.add(g.mul(size, 0.3275911), 1.0))
    positive = g.sub(1.0, g.mul(g.mul(t, polynomial(g, t, ERF)), g.exp(g.neg(g.mul(size, size)))))
    return g.select(g.lt(x, 0.0), g.neg(positive), positive)


def product(g: Emitter, a: Value, b: Operand) -> Value:
    """a * b. tract rewrites `x * x` to its square, which int64 lacks and which saturates for uint8: hence -(x * -x)."""
    if a is b and a.dtype.kind in "iu":
        return negative(g, g.mul(a, negative(g, a)))
    return g.mul(a, b)


def is_nan(g: Emitter, x: Value) -> Value:
    return g.ne(x, x)


def with_nan(g: Emitter, value: Value, x: Value) -> Value:
    """Return `value`, under the option `keep_nan` with a NaN where the float operand `x` is NaN."""
    return g.select(g.eq(x, x), value, x) if x.dtype.kind == "f" and use_option(g, "keep_nan") else value


def without_nan(value: Value) -> Value:
    """Return the value in which `with_nan` restores each NaN; other values unchanged."""
    chosen = value.producer
    if chosen is None or chosen.name != "select":
        return value
    condition, number, x = (chosen.arguments[name] for name in ("condition", "true_value", "false_value"))
    equality = condition.producer
    compares_itself = (
        equality is not None and equality.name == "eq" and all(v is x for v in equality.arguments.values())
    )
    return number if compares_itself and isinstance(number, Value) else value


def maximum(g: Emitter, a: Value, b: Operand) -> Value:
    """Return the larger one; NaN if either is NaN and `keep_nan` is on. `b` as a Python number must not be NaN."""
    if a.dtype.kind == "f" and use_option(g, "keep_nan"):
        return nan_maximum(g, a, b)
    return g.or_(a, b) if a.dtype == BOOL else g.max(a, _like(g, b, a))


def minimum(g: Emitter, a: Value, b: Operand) -> Value:
    """Return the smaller one; NaN if either is NaN and `keep_nan` is on. `b` as a Python number must not be NaN."""
    if a.dtype.kind == "f" and use_option(g, "keep_nan"):
        return nan_minimum(g, a, b)
    return g.and_(a, b) if a.dtype == BOOL else g.min(a, _like(g, b, a))


def nan_maximum(g: Emitter, a: Value, b: Operand) -> Value:
    """Return the larger one; NaN if either is NaN."""
    return _nan_extreme(g, g.lt, g.gt, a, b) if a.dtype.kind == "f" else maximum(g, a, b)


def nan_minimum(g: Emitter, a: Value, b: Operand) -> Value:
    """Return the smaller one; NaN if either is NaN."""
    return _nan_extreme(g, g.gt, g.lt, a, b) if a.dtype.kind == "f" else minimum(g, a, b)


def _nan_extreme(g: Emitter, worse: Callable[..., Value], better: Callable[..., Value], a: Value, b: Operand) -> Value:
    if not isinstance(b, Value):  # a NaN compares false, and is kept
        return g.select(worse(a, b), _like(g, b, a), a)
    return g.select(g.or_(better(a, b), is_nan(g, a)), a, b)


def log_of_sum(g: Emitter, a: Value, b: Value, base: float = math.e) -> Value:
    """log(base^a + base^b) without overflow; equal infinities are their own sum."""
    far = g.neg(absolute(g, g.sub(a, b)))
    term = g.exp(g.mul(far, math.log(base))) if base != math.e else g.exp(far)
    more = g.log(g.add(term, 1.0))
    value = g.add(maximum(g, a, b), more if base == math.e else g.mul(more, 1 / math.log(base)))
    return g.select(g.and_(g.eq(a, b), g.eq(absolute(g, a), math.inf)), a, value)


def log1p(g: Emitter, x: Value) -> Value:
    """log(1 + x), also where 1 + x rounds: with u = 1 + x, log(u) * x / (u - 1) cancels the rounding."""
    u = g.add(x, 1.0)
    plain = g.log(u)
    exact = g.select(g.eq(u, 1.0), x, g.div(g.mul(plain, x), g.sub(u, 1.0)))
    return g.select(g.lt(x, 0.5), exact, plain)


def expm1(g: Emitter, x: Value) -> Value:
    """exp(x) - 1 = tanh(x / 2) * (exp(x) + 1), which is exact for small x too."""
    return g.mul(g.tanh(g.mul(x, 0.5)), g.add(g.exp(x), 1.0))


def softplus(g: Emitter, x: Value) -> Value:
    """Return log(1 + exp(x)) without overflow; an exact one is exp(x) where x is below -17, and others are 0 there."""
    power = g.exp(g.neg(absolute(g, x)))
    return g.add(g.max(x, 0.0), log1p(g, power) if g.node.exact else g.log(g.add(power, 1.0)))


def reduce_max(g: Emitter, x: Value, axes: list[int]) -> Value:
    return g.max_reduce(x, axes=axes) if axes else x


def sum_of(g: Emitter, x: Value, axes: list[int]) -> Value:
    return g.sum_reduce(x, axes=axes) if axes else x


def floor_divide(g: Emitter, a: Value, b: Value) -> Value:
    """Return a // b as Python does, for operands of equal dtype."""
    if a.dtype.kind == "u":
        return g.div(a, b)
    if a.dtype.kind == "i":
        quotient = g.one("div", a, b)  # rounded in either direction
        rest = g.sub(a, g.mul(quotient, b))
        lower = g.and_(g.ne(rest, 0), g.ne(_flag(g, g.lt(rest, 0)), _flag(g, g.lt(b, 0))))
        return g.sub(quotient, g.cast(lower, a.dtype))
    return g.floor(g.div(a, b))


def _flag(g: Emitter, condition: Value) -> Value:
    return g.cast(condition, np.dtype(np.uint8))


def zero(g: Emitter, x: Value) -> Value:
    return g.constant(np.zeros((1,) * x.rank, x.dtype))


def _like(g: Emitter, number: Operand, x: Value) -> Operand:
    """Return an operand for `x`: for floats, a constant of its dtype unless it is float32 and the number finite."""
    if isinstance(number, Value) or x.dtype.kind != "f" or (x.dtype == FLOAT32 and math.isfinite(number)):
        return number
    return g.literal(number, x.dtype)
