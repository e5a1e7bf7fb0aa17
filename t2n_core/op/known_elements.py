"""Prove that all elements of a value that the graph computes are true, or that none is below a number."""

from __future__ import annotations

import math
from typing import Final

from t2n_core.nnef.graph import BOOL, FLOAT32, INT64, Operation, Value
from t2n_core.nnef.sizes.dims import at_most
from t2n_core.op.weights import constant_values

_COPIES: Final = frozenset({"unsqueeze", "squeeze", "reshape", "transpose", "tile", "copy"})
_MOVES: Final = _COPIES | {"slice", "concat"}
_KEPT: Final = frozenset({"unsqueeze", "squeeze", "reshape", "transpose", "slice"})
_MONOTONIC: Final = _KEPT | {"max", "log", "sqrt", "add", "sub", "mul"}
_HUGE: Final = 1e30
_TINY: Final = 1e-30
_COUNTS: Final = frozenset({"tract_core_shape_of", "argmax_reduce", "argmin_reduce"})
_SMALL: Final = 1 << 31
_FEW: Final = 8
"""Each sum may double its largest element, which must not exceed 63 bits."""


def is_always_true(value: Value) -> bool:
    """Return whether all elements of a condition are true: copies of a constant."""
    while value.weight is None and value.producer is not None and value.producer.name in _COPIES:
        value = next(value.producer.inputs())
    elements = constant_values(value) if value.dtype == BOOL else None
    return elements is not None and bool(elements.all())


def is_never_negative(value: Value) -> bool:
    """Return whether no element of integers is below 0: sizes, positions, small constants, sums of a few."""
    pending, seen, sums = [value], {value}, 0
    while pending:
        current = pending.pop()
        if current.dtype.kind in "bu":
            continue
        elements = constant_values(current) if current.dtype.kind == "i" else None
        sources = _sources(current) if elements is None else None
        if elements is not None and ((elements >= 0) & (elements < _SMALL)).all():
            continue
        sums += current.producer is not None and current.producer.name == "add"
        if sources is None or sums > _FEW:
            return False
        pending += [source for source in sources if source not in seen]
        seen.update(sources)
    return True


def _sources(value: Value) -> list[Value] | None:
    """Return the values that must not be negative for this one to be none either; None if that is not enough."""
    made = value.producer
    if made is None or value.dtype.kind != "i":
        return None
    if made.name == "tract_core_range":
        bounds = made.arguments["start"], made.arguments["step"]
        return [] if all(isinstance(bound, int) and bound >= 0 for bound in bounds) else None
    if made.name in _COUNTS:
        return []
    if made.name == "tract_core_cast":
        source = made.arguments["input"]
        if not isinstance(source, Value):
            return [] if at_most(0, source) else None
        is_wider = value.dtype.itemsize - source.dtype.itemsize >= (source.dtype.kind == "u")
        return [source] if is_wider and source.dtype.kind in "biu" else None
    if made.name == "select":
        return [made.arguments["true_value"], made.arguments["false_value"]]
    if made.name in _MOVES or made.name == "abs" or (made.name == "add" and value.dtype == INT64):
        return list(made.inputs())
    return None


def least_of(value: Value) -> float | None:
    """Return a finite number that each element is proven to reach, so that none is NaN; None without a proof.

    A `max` with a number loses NaN: where NaN is kept, a clamp is not written as one.
    """
    steps: list[Operation] = []
    while value.producer is not None and value.producer.name in _MONOTONIC:
        steps.append(value.producer)
        if value.producer.name == "max":
            break
        value = next(value.producer.inputs())
    if not steps or steps[-1].name != "max" or value.dtype != FLOAT32:
        return None
    least = _number(steps.pop())
    for step in reversed(steps):
        least = None if least is None else _least_after(step, least)
    return least if least is not None and abs(least) < _HUGE else None


def _least_after(step: Operation, least: float) -> float | None:
    """Return what the result of an operation reaches whose operand reaches `least`; an infinite operand is no NaN."""
    number = _number(step)
    if step.name in _KEPT:
        return least
    if step.name in ("log", "sqrt"):
        return (math.log(least) if step.name == "log" else math.sqrt(least)) if least > _TINY else None
    if number is None or (step.name == "mul" and number <= _TINY):
        return None
    return {"add": least + number, "sub": least - number, "mul": least * number}[step.name]


def _number(step: Operation) -> float | None:
    """Return the number that is the second operand, or either one where the order does not matter."""
    operands = [step.arguments.get(name) for name in ("x", "y")]
    candidates = operands[1:] if step.name == "sub" else operands
    return next(
        (candidate for candidate in candidates if isinstance(candidate, float) and math.isfinite(candidate)), None
    )
