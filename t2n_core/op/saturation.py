"""Products with a gate that has closed.

tract clamps the input of its kernels for `sigmoid` and `tanh`: sigmoid(-1000) is 4e-7 in 0.23 and 3e-8 before, and
1 + tanh(-1000) is 6e-7 and 1e-7. A gate multiplies a factor without bounds, and that much of the factor stays: 4e-4
of 1000, where PyTorch gives 0. Rules set such products to zero below the input at which the gate itself is smaller
than the error of the kernel. A NaN, and the NaN of an infinite factor, stay.
"""

from __future__ import annotations

from t2n_core.nnef.emitter import Emitter, Operand
from t2n_core.nnef.graph import FLOAT32, Value
from t2n_core.op import formulas

SIGMOID_CLOSES = -16.0
"""sigmoid(-16) is 1.1e-7."""
TANH_CLOSES = -9.0
"""1 + tanh(-9) is 3e-8."""
GELU_CLOSES = -5.5
"""The tanh form of gelu(-5.5) is -6e-9."""

_BOUNDED = frozenset({"sigmoid", "tanh", "softmax", "variable"})


def zero_below(g: Emitter, value: Value, x: Value, limit: float) -> Value:
    """Return `value`, multiplied by zero where `x` is below `limit`."""
    return g.mul(value, g.cast(g.ge(x, limit), value.dtype))


def gated(g: Emitter, factor: Value, gate: Value) -> Value | None:
    """Return the product of a factor and a sigmoid, which is 0 where the gate has closed.

    None if `gate` is no sigmoid of float32, or if the factor is bounded.
    """
    x = _input_of(gate, "sigmoid")
    if x is None or _maker(factor) in _BOUNDED:
        return None
    if factor is x:  # in the form of a silu, for which some versions have a kernel
        closed = zero_below(g, x, x, SIGMOID_CLOSES)
        return g.mul(closed, g.sigmoid(closed))
    return g.mul(factor, zero_below(g, gate, x, SIGMOID_CLOSES))


def gated_by_sigmoid(g: Emitter, factor: Value, x: Value) -> Value:
    """Return factor * sigmoid(x), which is 0 where the gate has closed."""
    gate = formulas.sigmoid(g, x)
    product = gated(g, factor, gate)
    return g.mul(factor, gate) if product is None else product


def closing_sum(g: Emitter, total: Value, left: Operand, right: Operand) -> Value:
    """Return `total`, the sum of two terms; it closes where it is 1 + tanh(x)."""
    for term, other in ((left, right), (right, left)):
        if isinstance(term, Value) and not isinstance(other, Value) and other == 1:
            x = _input_of(term, "tanh")
            return total if x is None else zero_below(g, total, x, TANH_CLOSES)
    return total


def _maker(value: Value) -> str:
    made = _uncast(value).producer
    return "" if made is None else made.name


def _input_of(value: Value, operator: str) -> Value | None:
    """Return the float32 input of an operator with one input that made a value; None if another one made it."""
    made = _uncast(value).producer
    if made is None or made.name != operator:
        return None
    x = next(made.inputs())
    return x if x.dtype == FLOAT32 else None


def _uncast(value: Value) -> Value:
    while value.producer is not None and value.producer.name == "tract_core_cast":
        source = next(value.producer.inputs(), None)
        if source is None:  # a size
            break
        value = source
    return value


__all__ = ["GELU_CLOSES", "closing_sum", "gated", "gated_by_sigmoid", "zero_below"]
