"""Prove that all elements of a value that the graph computes are true, or that none is below 0."""

from __future__ import annotations

from typing import Final

from t2n_core.nnef.graph import BOOL, INT64, Value
from t2n_core.nnef.sizes.dims import at_most
from t2n_core.op.weights import constant_values

_COPIES: Final = frozenset({"unsqueeze", "squeeze", "reshape", "transpose", "tile", "copy"})
_MOVES: Final = _COPIES | {"slice", "concat"}
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
        one = pending.pop()
        if one.dtype.kind in "bu":
            continue
        elements = constant_values(one) if one.dtype.kind == "i" else None
        sources = _sources(one) if elements is None else None
        if elements is not None and ((elements >= 0) & (elements < _SMALL)).all():
            continue
        sums += one.producer is not None and one.producer.name == "add"
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
        return [] if all(isinstance(one, int) and one >= 0 for one in bounds) else None
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
