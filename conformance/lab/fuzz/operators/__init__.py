"""The operators of random models: each function adds one or a few steps to a draft, or raises Rejected."""

from __future__ import annotations

from collections.abc import Callable

from conformance.lab.fuzz.draft import Draft
from conformance.lab.fuzz.operators import decisions, layers, numbers, positions, running, shapes, slices

Operator = Callable[[Draft], str]

OPERATORS: dict[Operator, float] = {
    **slices.OPERATORS,
    **shapes.OPERATORS,
    **positions.OPERATORS,
    **layers.OPERATORS,
    **numbers.OPERATORS,
}
"""Operator -> how often, relative to the others."""

_SHARE_OF_OTHERS = 0.08
DECIDING: dict[Operator, float] = {
    **decisions.OPERATORS,
    **{operator: _SHARE_OF_OTHERS * weight for operator, weight in OPERATORS.items()},
}
"""Operator -> how often in models that decide on sizes."""

RUNNING: dict[Operator, float] = {**running.OPERATORS, numbers.unary: 3, numbers.binary: 2, shapes.transpose: 1}
"""Operator -> how often in models of running operators, whose axes are long."""

__all__ = ["DECIDING", "OPERATORS", "RUNNING", "Operator"]
