"""Products with a saturated gate.

tract clamps the input of its kernels for `sigmoid` and `tanh`: sigmoid(-1000) is 4.8e-7 from 0.23.6 on and 3e-8 before,
and 1 + tanh(-1000) is 6e-7 and 1e-7. A gate multiplies an unbounded factor, and that much of the factor remains: 4.8e-4
of 1000, where PyTorch gives 0. Rules write a gate that ends at 0 (`closing_sigmoid` of the emitter), or set the
product to zero below the input at which the gate itself is smaller than the error of the kernel. The NaN of an infinite
factor is kept.
"""

from __future__ import annotations

from t2n_core.nnef.emitter import Emitter, Operand
from t2n_core.nnef.graph import FLOAT32, Value
from t2n_core.op import formulas

TANH_CLOSES = -9.0
"""1 + tanh(-9) is 3e-8."""
GELU_CLOSES = -5.5
"""gelu(-5.5) with tanh is -6e-9."""

_BOUNDED = frozenset({"sigmoid", "tanh", "softmax", "variable"})


def zero_below(g: Emitter, value: Value, x: Value, limit: float) -> Value:
    """Return `value`, multiplied by zero where `x` is below `limit`."""
    return g.mul(value, g.cast(g.ge(x, limit), value.dtype))


def closing_product(g: Emitter, factor: Value, gate: Value) -> Value | None:
    """Return the product of a factor and a sigmoid, which is 0 where the gate has closed.

    None if `gate` is not a sigmoid of float32, or if the factor is bounded.
    """
    x = _input_of(gate, "sigmoid")
    if x is None or _producer_name(factor) in _BOUNDED:
        return None
    closing = formulas.with_nan(g, g.closing_sigmoid(_activation(gate), x), x)
    return g.mul(factor, g.cast(closing, gate.dtype))


def closing_sigmoid_product(g: Emitter, factor: Value, x: Value) -> Value:
    """Return factor * sigmoid(x), which is 0 where the gate has closed."""
    gate = formulas.sigmoid(g, x)
    product = closing_product(g, factor, gate)
    return g.mul(factor, gate) if product is None else product


def closing_sum(g: Emitter, total: Value, left: Operand, right: Operand) -> Value:
    """Return `total`, the sum of two terms; a sum 1 + tanh(x) becomes 0 below the x at which tanh is -1."""
    for term, other in ((left, right), (right, left)):
        if isinstance(term, Value) and not isinstance(other, Value) and other == 1:
            x = _input_of(term, "tanh")
            return total if x is None else zero_below(g, total, x, TANH_CLOSES)
    return total


def _producer_name(value: Value) -> str:
    producer = _uncast(value).producer
    return "" if producer is None else producer.name


def _input_of(value: Value, operator: str) -> Value | None:
    """Return the float32 input of the unary operator that computes a value; None if another operator computes it."""
    producer = _activation(value).producer
    if producer is None or producer.name != operator:
        return None
    x = next(producer.inputs())
    return x if x.dtype == FLOAT32 else None


def _activation(value: Value) -> Value:
    """Return what the engine's kernel computes, before a cast and before NaN is restored."""
    return formulas.without_nan(_uncast(value))


def _uncast(value: Value) -> Value:
    while value.producer is not None and value.producer.name == "tract_core_cast":
        source = next(value.producer.inputs(), None)
        if source is None:  # a size
            break
        value = source
    return value
