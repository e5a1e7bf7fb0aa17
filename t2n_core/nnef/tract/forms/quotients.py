"""Quotients and means that are rounded once, as IEEE 754 requires.

The engine multiplies by the reciprocal: in every release for a constant divisor, from 0.20 on for a tensor too. In
float32 the last bit is then wrong for half of the integers, so that 21 / 7 is above 3. In float64 the product differs
from the quotient by less than 2^-51 of it, while a quotient of two float32 is at least 2^-49 of it away from any
midpoint between two float32: rounded to float32, both are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from t2n_core.nnef.emitter import Operand
from t2n_core.nnef.graph import FLOAT16, FLOAT32, FLOAT64, Value
from t2n_core.nnef.tract.builder import TractBuilder

_SPLITTER = float(2**27 + 1)
"""A float64 times this, minus the difference of that product and itself, has the upper 26 bits."""


def is_float(*operands: Operand) -> bool:
    """Return whether an operation with these operands computes in floats."""
    return any(isinstance(operand, Value) and operand.dtype.kind == "f" for operand in operands)


def in_float64(g: TractBuilder, value: Value, formula: Callable[[Value], Value]) -> Value:
    """Return a formula of a float computed in float64, and rounded to the float's own dtype once."""
    return _narrow(g, formula(_widen(g, value)), value)


def exact_quotient(g: TractBuilder, x: Operand, y: Operand) -> Value:
    """Return `x / y` of floats of one dtype, rounded once; float16 is rounded from float32, as PyTorch does."""
    like = x if isinstance(x, Value) else y
    assert isinstance(like, Value)
    if like.dtype == FLOAT64:
        return _of_float64(g, x, y)
    return _narrow(g, g.one("div", _wide(g, x), _wide(g, y)), like)


def _wide(g: TractBuilder, operand: Operand) -> Operand:
    """Return an operand in float64; a Python number is first rounded to float32, as PyTorch does."""
    if isinstance(operand, Value):
        return _widen(g, operand)
    with np.errstate(over="ignore"):
        return float(np.float32(operand))


def _widen(g: TractBuilder, value: Value) -> Value:
    return g.cast(g.cast(value, FLOAT32) if value.dtype == FLOAT16 else value, FLOAT64)


def _narrow(g: TractBuilder, value: Value, like: Value) -> Value:
    return g.cast(g.cast(value, FLOAT32) if like.dtype == FLOAT16 else value, like.dtype)


def _of_float64(g: TractBuilder, x: Operand, y: Operand) -> Value:
    """Return a quotient of float64: the engine's, plus the remainder of `x` after its product with `y`, divided by `y`.

    That remainder is exact, by Dekker's product; it is NaN where an operand or the quotient is zero or infinite.
    """
    dividend, divisor = (o if isinstance(o, Value) else g.constant(o, FLOAT64) for o in (x, y))
    quotient = g.one("div", dividend, divisor)
    product = g.mul(quotient, divisor)
    (upper, lower), (high, low) = _split(g, quotient), _split(g, divisor)
    error = g.sub(g.mul(upper, high), product)
    for part in (g.mul(upper, low), g.mul(lower, high), g.mul(lower, low)):
        error = g.add(error, part)
    rest = g.sub(g.sub(dividend, product), error)
    corrected = g.add(quotient, g.one("div", rest, divisor))
    is_finite = g.and_(g.lt(rest, math.inf), g.gt(rest, -math.inf))
    return g.select(is_finite, corrected, quotient)


def _split(g: TractBuilder, value: Value) -> tuple[Value, Value]:
    """Return two float64 values with half of the bits each, whose sum is `value`."""
    scaled = g.mul(value, _SPLITTER)
    upper = g.sub(scaled, g.sub(scaled, value))
    return upper, g.sub(value, upper)
