"""Elementwise operators, with their operands in the order that is fast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from t2n_core.nnef.emitter import Expected, Operand
from t2n_core.nnef.graph import FLOAT32, Value
from t2n_core.nnef.tract.builder import TractBuilder
from t2n_core.nnef.tract.forms.quotients import exact_quotient, is_float
from t2n_core.nnef.tract.optimiser import is_smaller

_SIGMOID_CLOSES = -16.0
"""sigmoid(-16) is 1.1e-7."""
_LAST_SIGMOID = 2.0**-25
"""The kernel's result for all x below -18.6, or above it; half of the last bit of a float32 below 1, which stays 1."""


def add(g: TractBuilder, x: Operand, y: Operand, out: Expected | None = None) -> Value:
    """Write `x + y`."""
    return g.one("add", *_small_first(g, x, y), out=out)


def maximum(g: TractBuilder, x: Operand, y: Operand, out: Expected | None = None) -> Value:
    """Write the larger one of `x` and `y`."""
    return g.one("max", *_small_first(g, x, y), out=out)


def minimum(g: TractBuilder, x: Operand, y: Operand, out: Expected | None = None) -> Value:
    """Write the smaller one of `x` and `y`."""
    return g.one("min", *_small_first(g, x, y), out=out)


def relu(g: TractBuilder, x: Value) -> Value:
    """Write `relu`, or the maximum that the engine rewrites it to, with its operands in the order that is fast."""
    fast = g.traits.wants_small_first and x.dtype == FLOAT32
    return maximum(g, x, 0.0) if fast else g.one("relu", x)


def sub(g: TractBuilder, x: Operand, y: Operand, out: Expected | None = None) -> Value:
    """Write `x - y`, or `-y + x` where that is fast."""
    if g.traits.wants_small_first and is_smaller(y, x):
        return g.one("add", g.one("neg", y) if isinstance(y, Value) else -y, x, out=out)
    return g.one("sub", x, y, out=out)


def mul(g: TractBuilder, x: Operand, y: Operand, out: Expected | None = None) -> Value:
    """Write `x * y`."""
    return g.one("mul", *_small_first(g, x, y), out=out)


def div(g: TractBuilder, x: Operand, y: Operand, out: Expected | None = None) -> Value:
    """Write `x / y`: rounded towards zero for integers, exactly rounded for floats where a decision depends on it."""
    if g.node.exact and out is None and is_float(x, y):
        return exact_quotient(g, x, y)
    quotient = g.one("div", x, y, out=out)
    if isinstance(x, Value) and x.dtype.kind == "i" and _may_be_shifted(g, y):
        return _towards_zero(g, quotient, x, y)
    return quotient


def closing_sigmoid(g: TractBuilder, sigmoid: Value, x: Value) -> Value:
    """Write a sigmoid that is 0 for large negative `x`, where the kernel ends at a positive number.

    The quotient is exact, and takes less time than a comparison and its products where `exp` is fast.
    """
    if g.traits.has_fast_exp:
        return g.recip(add(g, g.exp(g.neg(x)), 1.0))
    if g.traits.ends_sigmoid_early:
        return g.mul(sigmoid, g.cast(g.ge(x, _SIGMOID_CLOSES), sigmoid.dtype))
    return maximum(g, sub(g, sigmoid, _LAST_SIGMOID), 0.0)


def scatter_elements(g: TractBuilder, input: Value, indices: Value, updates: Value, **attributes: Any) -> Value:
    """Write `tract_core_scatter_elements`; booleans as integers, which all releases scatter."""
    if input.dtype.kind != "b":
        return g.one("tract_core_scatter_elements", input, indices, updates, **attributes)
    numbers = [g.cast(v, g.truth_dtype) for v in (input, updates)]
    out = g.one("tract_core_scatter_elements", numbers[0], indices, numbers[1], **attributes)
    return g.cast(out, input.dtype)


def _small_first(g: TractBuilder, x: Operand, y: Operand) -> tuple[Operand, Operand]:
    """Return the operands of a commutative operator in the order that is fast."""
    return (y, x) if g.traits.wants_small_first and is_smaller(y, x) else (x, y)


def _may_be_shifted(g: TractBuilder, y: Operand) -> bool:
    """Return whether the engine may rewrite the division by this divisor to a shift, which rounds down."""
    if not g.traits.shifts_for_powers:
        return False
    if isinstance(y, Value) and y.weight is None:
        return g.facts.is_constant(y)
    if isinstance(y, Value) and y.weight is not None:
        numbers = set(np.frombuffer(b"".join(y.weight.chunks()), y.dtype).tolist())
    else:
        numbers = {y}
    return len(numbers) == 1 and numbers != {1} and int(numbers.pop()).bit_count() == 1


def _towards_zero(g: TractBuilder, quotient: Value, x: Value, y: Operand) -> Value:
    """Return a quotient rounded towards zero, by adding one where it was rounded down."""
    rest = g.sub(x, g.mul(quotient, y))
    rounded_down = g.and_(g.lt(x, 0), g.gt(rest, 0))
    return g.add(quotient, g.cast(rounded_down, x.dtype))


FORMS: dict[str, Callable[..., Value]] = {
    "add": add,
    "sub": sub,
    "mul": mul,
    "div": div,
    "max": maximum,
    "min": minimum,
    "relu": relu,
    "tract_core_scatter_elements": scatter_elements,
}
