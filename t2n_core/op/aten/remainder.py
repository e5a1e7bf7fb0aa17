"""Remainders, and quotients rounded down, which are based on them: both are exact, as Python's `%` and `//` are."""

from __future__ import annotations

import math
from typing import Final

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import FLOAT64, Value
from t2n_core.op import formulas
from t2n_core.op.promote import Tensorlike, pair, tensor
from t2n_core.op.registry import op

_BITS = 30
"""Bits of a quotient that are computed one by one where there is no float64, which is exact up to 29."""

_LARGEST: Final = 2.0**40
"""Quotients from which on a remainder of float64 is off by 2^-13 of its divisor, and soon by more than all of it."""


def _rest(g: Emitter, self: Tensorlike, other: Tensorlike, *, for_quotient: bool = False) -> tuple[Value, Value, Value]:
    """Return a, b and the remainder of a by b with the sign of a, in the widest float of the target.

    It is NaN for quotients from 2^40 on, unless it is what makes `a` a multiple of `b`: `for_quotient`.
    """
    a, b = _wide(g, self), _wide(g, other)
    return a, b, _by_quotient(g, a, b, for_quotient) if g.widest == FLOAT64 else _bit_by_bit(g, a, b)


def _by_quotient(g: Emitter, a: Value, b: Value, for_quotient: bool) -> Value:
    """Return a - b * trunc(a / b) of float64, where the remainder of float32 is exact up to quotients of 2^29."""
    quotient = formulas.truncate(g, g.div(a, b))
    rest = g.sub(a, g.mul(quotient, b))
    if not for_quotient:
        rest = g.select(g.lt(formulas.absolute(g, quotient), _LARGEST), rest, math.nan)
    # a finite number modulo an infinity is itself, where 0 * inf gives NaN
    infinite_divisor = g.and_(g.lt(formulas.absolute(g, a), math.inf), g.eq(formulas.absolute(g, b), math.inf))
    return g.select(infinite_divisor, a, rest)


def _bit_by_bit(g: Emitter, a: Value, b: Value) -> Value:
    """Subtract 2^k |b| wherever it does not exceed the rest, which is exact.

    The result is NaN for quotients from 2^30 on, and where there is no remainder.
    """
    left, step = formulas.absolute(g, a), formulas.absolute(g, b)
    for bit in reversed(range(_BITS)):
        part = g.mul(step, float(2**bit))
        left = g.select(g.ge(left, part), g.sub(left, part), left)
    left = g.select(g.lt(left, step), left, math.nan)
    return g.select(g.lt(a, 0.0), g.neg(left), left)


def _wide(g: Emitter, value: Tensorlike) -> Value:
    """Return an operand in the widest float. A Python number is first rounded to the result's dtype."""
    if isinstance(value, bool | int | float):
        return tensor(g, float(g.output.dtype.type(value)), g.widest)
    return tensor(g, value, g.widest)


@op("aten::fmod", "prims::fmod")
def fmod(g: Emitter, self: Tensorlike, other: Tensorlike) -> Value:
    """Return the remainder with the sign of the dividend."""
    if g.output.dtype.kind == "f":
        return g.cast(_rest(g, self, other)[2], g.output.dtype)
    a, b = pair(g, self, other)
    return g.sub(a, g.mul(g.div(a, b), b))


@op("aten::remainder", "prims::remainder")
def remainder(g: Emitter, self: Tensorlike, other: Tensorlike) -> Value:
    """Return the remainder with the sign of the divisor, Python's `%`."""
    if g.output.dtype.kind == "f":
        _, b, rest = _rest(g, self, other)
        return g.cast(g.select(_signs_differ(g, rest, b), g.add(rest, b), rest), g.output.dtype)
    a, b = pair(g, self, other)
    return g.sub(a, g.mul(formulas.floor_divide(g, a, b), b))


def _signs_differ(g: Emitter, rest: Value, b: Value) -> Value:
    """rest != 0 and (rest < 0) != (b < 0)."""
    return g.or_(g.and_(g.lt(rest, 0.0), g.gt(b, 0.0)), g.and_(g.gt(rest, 0.0), g.lt(b, 0.0)))


@op("aten::floor_divide")
def floor_divide(g: Emitter, self: Tensorlike, other: Tensorlike) -> Value:
    """Return the quotient rounded down; floats use the exact remainder as Python does: 1 // 0.1 is 9."""
    if g.output.dtype.kind != "f":
        return formulas.floor_divide(g, *pair(g, self, other))
    a, b, rest = _rest(g, self, other, for_quotient=True)
    exact = g.div(g.sub(a, rest), b)
    lower = g.select(_signs_differ(g, rest, b), g.sub(exact, 1.0), exact)
    nearest = g.floor(g.add(lower, 0.5))
    return g.cast(g.select(g.eq(b, 0.0), g.div(a, b), nearest), g.output.dtype)
