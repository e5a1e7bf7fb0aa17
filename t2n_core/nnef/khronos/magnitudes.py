"""Value ranges of integers: how large the elements of each value can be."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from t2n_core.nnef.dat import ArrayWeight
from t2n_core.nnef.graph import BOOL, Operation, Value, values_in
from t2n_core.nnef.sizes.dims import product

_MOVING = frozenset("reshape transpose squeeze unsqueeze slice tile concat stack split unstack copy".split())


class Magnitudes:
    """Value-range analysis: a bound on the magnitude of each integer of a graph; infinity if none is known."""

    def __init__(self) -> None:
        self._known: dict[Value, float] = {}

    def state(self, value: Value, most: int) -> None:
        """Record that no element of `value` is beyond `most`."""
        self._known[value] = min(self.of(value), most)

    def of(self, operand: Any) -> float:
        """Return the bound of an operand; for a literal its own magnitude."""
        if not isinstance(operand, Value):
            return float(abs(operand))
        if operand not in self._known:
            self._known[operand] = self._bound_of_value(operand)
        return self._known[operand]

    def _bound_of_value(self, value: Value) -> float:
        if value.dtype == BOOL:
            return 1
        if value.weight is not None:
            weight = value.weight
            if value.dtype.kind not in "iu" or not isinstance(weight, ArrayWeight) or not weight.array.size:
                return math.inf
            return float(np.abs(weight.array.astype(np.float64)).max())
        if value.producer is None:
            return math.inf
        return min(self._bound_of_result(value.producer), largest(value.dtype))

    def _bound_of_result(self, operation: Operation) -> float:
        arguments = operation.arguments
        name = operation.name
        if name in ("argmax_reduce", "argmin_reduce"):
            source: Value = arguments["input"]
            return float(product([source.shape[axis] for axis in arguments["axes"]]))
        if name == "gather":
            return self.of(arguments["input"])
        if name == "select":
            return max(self.of(arguments["true_value"]), self.of(arguments["false_value"]))
        if name == "cast":
            return self.of(arguments["input"])
        if name in _MOVING:
            return max(self.of(operand) for argument in arguments.values() for operand in values_in(argument))
        return math.inf


def largest(dtype: np.dtype[Any]) -> float:
    """Return the largest magnitude of a dtype."""
    return max(abs(int(np.iinfo(dtype).min)), int(np.iinfo(dtype).max)) if dtype.kind in "iu" else math.inf
