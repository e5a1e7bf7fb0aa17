"""Arithmetic of two and three tensors. Operands are cast to the captured dtype of the result first, as PyTorch does."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import BOOL, INT64, Value
from t2n_core.op import formulas, saturation
from t2n_core.op.aten.remainder import floor_divide
from t2n_core.op.option_effects import use_option
from t2n_core.op.promote import Tensorlike, operand, pair, tensor, wide_dtype, wide_input
from t2n_core.op.registry import op


def _times_alpha(g: Emitter, value: Tensorlike, alpha: Tensorlike) -> Tensorlike:
    """value * alpha in the dtype of the result."""
    if alpha == 1:
        return value
    if isinstance(value, bool | int | float) and isinstance(alpha, bool | int | float):
        return value * alpha
    return g.mul(tensor(g, value, g.output.dtype), operand(g, alpha, g.output.dtype))


@op("aten::add", "prims::add")
def add(g: Emitter, self: Tensorlike, other: Tensorlike, alpha: Tensorlike = 1) -> Value:
    """self + alpha * other; the logical or for booleans."""
    if g.output.dtype == BOOL:
        return g.or_(*pair(g, self, other)) if alpha else tensor(g, self, BOOL)
    left, right = _operands(g, self, _times_alpha(g, other, alpha))
    if isinstance(left, Value) and left.dtype.kind in "iu" and type(right) is int and right == 0:
        return left  # positions from the start of a sequence
    return saturation.closing_sum(g, g.add(left, right), left, right)


@op("aten::sub", "aten::subtract", "prims::sub")
def sub(g: Emitter, self: Tensorlike, other: Tensorlike, alpha: Tensorlike = 1) -> Value:
    """self - alpha * other."""
    return g.sub(*_operands(g, self, _times_alpha(g, other, alpha)))


@op("aten::rsub")
def rsub(g: Emitter, self: Value, other: Tensorlike, alpha: Tensorlike = 1) -> Value:
    """other - alpha * self."""
    return g.sub(*_operands(g, other, _times_alpha(g, self, alpha)))


@op("aten::mul", "aten::multiply", "prims::mul")
def mul(g: Emitter, self: Tensorlike, other: Tensorlike) -> Value:
    """self * other; the logical and for booleans."""
    if g.output.dtype == BOOL:
        return g.and_(*pair(g, self, other))
    left, right = _operands(g, self, other)
    if isinstance(left, Value) and isinstance(right, int | float) and right == 1:
        return left  # as in 1 / x, which PyTorch writes as the reciprocal times 1
    if isinstance(left, Value) and isinstance(right, Value):
        closing = saturation.closing_product(g, left, right) or saturation.closing_product(g, right, left)
        if closing is not None:
            return closing
    return formulas.product(g, left, right) if isinstance(left, Value) else g.mul(left, right)


def _operands(g: Emitter, a: Tensorlike, b: Tensorlike) -> tuple[Value | float, Value | float]:
    """Return both operands in the dtype of the result, at least one of them as a value."""
    left, right = operand(g, a, g.output.dtype), operand(g, b, g.output.dtype)
    if not isinstance(left, Value) and not isinstance(right, Value):
        left = tensor(g, a, g.output.dtype)
    return left, right


@op("aten::div", "aten::divide", "prims::div")
def div(g: Emitter, self: Tensorlike, other: Tensorlike, rounding_mode: str | None = None) -> Value:
    """Return the quotient, rounded by `rounding_mode`: "trunc", "floor", or None, for which integers give floats."""
    if rounding_mode == "floor":
        return floor_divide(g, self, other)
    if rounding_mode == "trunc" and g.output.dtype.kind == "f":
        # the quotient is rounded to its own dtype first: 194.625 / 1.041, which is 186.96, is 187 in float16
        quotient = g.cast(g.quotient(wide_input(g, self), wide_input(g, other)), g.output.dtype)
        return g.cast(formulas.truncate(g, wide_input(g, quotient)), g.output.dtype)
    return g.div(*_operands(g, self, other))


@op("aten::true_divide")
def true_divide(g: Emitter, self: Tensorlike, other: Tensorlike) -> Value:
    return g.div(*_operands(g, self, other))


@op("aten::pow", "aten::float_power", "prims::pow")
def pow(g: Emitter, self: Tensorlike, exponent: Tensorlike | None = None, other: Tensorlike | None = None) -> Value:
    """self ** exponent; small integer exponents by multiplication, as PyTorch does."""
    power = exponent if exponent is not None else other
    assert power is not None
    dtype = g.output.dtype
    if dtype.kind != "f":
        return _integer_power(g, self, power)
    x = tensor(g, self, wide_dtype(dtype))
    if isinstance(power, bool | int | float) and float(power) in _POWERS:
        return g.cast(_POWERS[float(power)](g, x), dtype)
    return g.cast(g.pow(x, operand(g, power, x.dtype)), dtype)


_POWERS: dict[float, Callable[[Emitter, Value], Value]] = {
    0.5: lambda g, x: g.sqrt(x),
    1.0: lambda g, x: x,
    2.0: lambda g, x: g.mul(x, x),
    3.0: lambda g, x: g.mul(g.mul(x, x), x),
    -0.5: lambda g, x: g.rsqrt(x),
    -1.0: lambda g, x: g.recip(x),
    -2.0: lambda g, x: g.recip(g.mul(x, x)),
}


def _integer_power(g: Emitter, base: Tensorlike, power: Tensorlike) -> Value:
    """base ** power in int64, which every version has, then wrapped; 0 for a negative power, except of 1 and -1."""
    x = tensor(g, base, INT64)
    if isinstance(power, int) and power >= 0:
        return g.cast(_power_by_squaring(g, x, power), g.output.dtype)
    n = tensor(g, power, INT64)
    positive = g.pow(x, g.max(n, 0))
    parity = g.pow(x, g.sub(n, g.mul(formulas.floor_divide(g, n, tensor(g, 2, INT64)), 2)))
    unit = g.or_(g.eq(x, 1), g.eq(x, -1))
    inverse = g.mul(parity, g.cast(unit, INT64))
    return g.cast(g.select(g.lt(n, 0), inverse, positive), g.output.dtype)


def _power_by_squaring(g: Emitter, x: Value, power: int) -> Value:
    """x ** power by squaring: `pow` with a constant becomes tract's own square and cube, which int64 lacks."""
    if power == 0:
        return g.add(g.mul(x, 0), 1)
    root = _power_by_squaring(g, x, power // 2) if power > 1 else x
    even = formulas.product(g, root, root) if power > 1 else x
    return g.mul(even, x) if power % 2 and power > 1 else even


def _extreme(key: str, formula: Callable[[Emitter, Value, Value], Value], *keys: str) -> None:
    @op(key, *keys)
    def rule(g: Emitter, self: Value, other: Tensorlike) -> Value:
        dtype = wide_dtype(g.output.dtype)
        return g.cast(formula(g, tensor(g, self, dtype), tensor(g, other, dtype)), g.output.dtype)


def _ignoring_nan(operator: str) -> Callable[[Emitter, Value, Value], Value]:
    """Return the formula of a `max` or `min` that ignores a NaN if the other operand is not NaN."""

    def formula(g: Emitter, a: Value, b: Value) -> Value:
        if a.dtype == BOOL:
            return g.or_(a, b) if operator == "max" else g.and_(a, b)
        return g.call(operator, a, b)[0]

    return formula


_extreme("aten::maximum", formulas.maximum, "aten::max.other", "prims::maximum")
_extreme("aten::minimum", formulas.minimum, "aten::min.other", "prims::minimum")
_extreme("aten::fmax", _ignoring_nan("max"), "prims::fmax")
_extreme("aten::fmin", _ignoring_nan("min"), "prims::fmin")


@op("aten::clamp", "aten::clip")
def clamp(g: Emitter, self: Value, min: Tensorlike | None = None, max: Tensorlike | None = None) -> Value:
    """min(max(x, lower), upper)."""
    x = wide_input(g, self)
    if min is not None:
        x = _apply_bound(g, formulas.maximum, x, min)
    if max is not None:
        x = _apply_bound(g, formulas.minimum, x, max)
    return g.cast(x, g.output.dtype)


def _apply_bound(
    g: Emitter, formula: Callable[[Emitter, Value, Value | float], Value], x: Value, bound: Tensorlike
) -> Value:
    limit = operand(g, bound, x.dtype)
    if isinstance(limit, float) and math.isnan(limit):
        return g.mul(x, math.nan)
    return formula(g, x, limit)


@op("aten::clamp_min")
def clamp_min(g: Emitter, self: Value, min: Tensorlike) -> Value:
    return clamp(g, self, min=min)


@op("aten::clamp_max")
def clamp_max(g: Emitter, self: Value, max: Tensorlike) -> Value:
    return clamp(g, self, max=max)


@op("aten::atan2", "aten::arctan2", "prims::atan2")
def atan2(g: Emitter, self: Value, other: Tensorlike) -> Value:
    """Return the angle of the point (other, self), also on the axes, for zeros of both signs and infinities."""
    y, x = wide_input(g, self), wide_input(g, other)
    tall, wide = formulas.absolute(g, y), formulas.absolute(g, x)
    steep = g.gt(tall, wide)
    long = g.select(steep, tall, wide)
    ratio = g.div(g.select(steep, wide, tall), g.select(g.eq(long, 0.0), 1.0, long))
    ratio = g.select(g.and_(g.eq(tall, wide), g.gt(tall, 0.0)), 1.0, ratio)  # inf / inf is 45 degrees
    angle = g.atan(ratio)
    angle = g.select(steep, g.sub(math.pi / 2, angle), angle)
    angle = g.select(formulas.sign_bit(g, x), g.sub(math.pi, angle), angle)
    angle = g.select(formulas.sign_bit(g, y), g.neg(angle), angle)
    return g.cast(angle, g.output.dtype)


@op("aten::hypot", "prims::hypot")
def hypot(g: Emitter, self: Value, other: Value) -> Value:
    """sqrt(a^2 + b^2) with the longer one factored out of the root, so that no square overflows or vanishes."""
    tall, wide = formulas.absolute(g, wide_input(g, self)), formulas.absolute(g, wide_input(g, other))
    limits, rank = np.finfo(tall.dtype), max(tall.rank, wide.rank)
    long = g.max(tall, wide)
    short = g.min(g.min(tall, wide), g.literal(float(limits.max), tall.dtype, rank))  # infinity / infinity is no ratio
    ratio = g.div(short, g.max(long, g.literal(float(limits.tiny), tall.dtype, rank)))
    length = g.mul(long, g.sqrt(g.add(g.mul(ratio, ratio), 1.0)))
    if use_option(g, "keep_nan"):  # infinite also if the other one is NaN
        length = g.select(g.eq(long, math.inf), long, formulas.with_nan(g, formulas.with_nan(g, length, tall), wide))
    return g.cast(length, g.output.dtype)


@op("aten::copysign")
def copysign(g: Emitter, self: Value, other: Tensorlike) -> Value:
    """|self| with the sign of `other`, also of -0.0."""
    x = formulas.absolute(g, wide_input(g, self))
    if isinstance(other, Value):
        return g.cast(g.select(formulas.sign_bit(g, wide_input(g, other)), g.neg(x), x), g.output.dtype)
    return g.cast(g.neg(x) if math.copysign(1.0, float(other)) < 0 else x, g.output.dtype)


@op("aten::lerp")
def lerp(g: Emitter, self: Value, end: Value, weight: Tensorlike) -> Value:
    """self + weight * (end - self), computed from the nearer end as PyTorch does."""
    a, b = wide_input(g, self), wide_input(g, end)
    span = g.sub(b, a)
    if isinstance(weight, Value):
        w = wide_input(g, weight)
        near = g.lt(formulas.absolute(g, w), 0.5)
        value = g.select(near, g.add(a, g.mul(w, span)), g.sub(b, g.mul(span, g.sub(1.0, w))))
    elif abs(float(weight)) < 0.5:
        value = g.add(a, g.mul(span, float(weight)))
    else:
        value = g.sub(b, g.mul(span, 1.0 - float(weight)))
    return g.cast(value, g.output.dtype)


@op("aten::addcmul")
def addcmul(g: Emitter, self: Value, tensor1: Value, tensor2: Value, value: Tensorlike = 1) -> Value:
    """self + value * tensor1 * tensor2."""
    a, b, c = (wide_input(g, v) for v in (self, tensor1, tensor2))
    product = g.mul(b, c)
    return g.cast(g.add(a, product if value == 1 else g.mul(product, operand(g, value, a.dtype))), g.output.dtype)


@op("aten::addcdiv")
def addcdiv(g: Emitter, self: Value, tensor1: Value, tensor2: Value, value: Tensorlike = 1) -> Value:
    """self + value * tensor1 / tensor2."""
    a, b, c = (wide_input(g, v) for v in (self, tensor1, tensor2))
    scaled = b if value == 1 else g.mul(b, operand(g, value, a.dtype))
    return g.cast(g.add(a, g.div(scaled, c)), g.output.dtype)


def _log_add(base: float, *keys: str) -> None:
    @op(*keys)
    def rule(g: Emitter, self: Value, other: Value) -> Value:
        a, b = wide_input(g, self), wide_input(g, other)
        return g.cast(formulas.log_of_sum(g, a, b, base), g.output.dtype)


_log_add(math.e, "aten::logaddexp")
_log_add(2.0, "aten::logaddexp2")


def _x_times(keys: tuple[str, ...], logarithm: Callable[[Emitter, Value], Value]) -> None:
    @op(*keys)
    def rule(g: Emitter, self: Tensorlike, other: Tensorlike) -> Value:
        """x * log(y), 0 where x is 0 and y is not NaN."""
        x, y = wide_input(g, self), wide_input(g, other)
        nothing = g.and_(g.eq(x, 0.0), g.eq(y, y))
        return g.cast(g.select(nothing, 0.0, g.mul(x, logarithm(g, y))), g.output.dtype)


_x_times(("aten::xlogy", "aten::special_xlogy"), lambda g, y: g.log(y))
_x_times(("aten::special_xlog1py",), formulas.log1p)


@op("aten::heaviside")
def heaviside(g: Emitter, self: Value, values: Value) -> Value:
    """0 below, `values` at, 1 above zero."""
    dtype = wide_dtype(g.output.dtype)
    x, at_zero = tensor(g, self, dtype), tensor(g, values, dtype)
    if dtype == BOOL:
        return g.or_(x, at_zero)
    return g.cast(g.select(g.eq(x, 0), at_zero, g.cast(g.gt(x, 0), dtype)), g.output.dtype)
