"""Arithmetic of integers, which the standard does not have: computed in `scalar`, where that is exact.

A float32 holds every integer up to 2^24. So a statement on integers is written in float32 if the elements of its
operands and its result are known to be that small: positions, indices, counts, truths. All else is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from t2n_core.nnef.graph import BOOL, FLOAT32, ArrayWeight, Operation, Value, values_in
from t2n_core.nnef.sizes.dims import product

if TYPE_CHECKING:
    from t2n_core.nnef.khronos.emitter import KhronosEmitter

EXACT = 2**24
"""The largest integer up to which float32 holds every integer."""
COMPARISONS = frozenset(["lt", "gt", "le", "ge", "eq", "ne"])
REAL = COMPARISONS | frozenset(
    "add sub mul div neg abs max min sum_reduce max_reduce min_reduce argmax_reduce argmin_reduce".split()
)
"""Operators that the standard has for real numbers alone."""
_MOVING = frozenset("reshape transpose squeeze unsqueeze slice tile concat stack split unstack copy".split())


class Magnitudes:
    """The largest absolute value that each integer of a graph can have; infinity where nothing is known."""

    def __init__(self) -> None:
        self._known: dict[Value, float] = {}

    def state(self, value: Value, most: int) -> None:
        """Note that no element of `value` is beyond `most`."""
        self._known[value] = min(self.of(value), most)

    def of(self, operand: Any) -> float:
        """Return the bound of an operand; of a literal its own magnitude."""
        if not isinstance(operand, Value):
            return float(abs(operand))
        if operand not in self._known:
            self._known[operand] = self._found(operand)
        return self._known[operand]

    def _found(self, value: Value) -> float:
        if value.dtype == BOOL:
            return 1
        if value.weight is not None:
            weight = value.weight
            if value.dtype.kind not in "iu" or not isinstance(weight, ArrayWeight) or not weight.array.size:
                return math.inf
            return float(np.abs(weight.array.astype(np.float64)).max())
        if value.producer is None:
            return math.inf
        return min(self._made(value.producer), _limit(value.dtype))

    def _made(self, operation: Operation) -> float:
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


def _limit(dtype: np.dtype[Any]) -> float:
    """Return the largest magnitude of a dtype."""
    return max(abs(int(np.iinfo(dtype).min)), int(np.iinfo(dtype).max)) if dtype.kind in "iu" else math.inf


_BOUNDS: Mapping[str, Callable[..., float]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a,
    "max": max,
    "min": max,
    "neg": lambda a: a,
    "abs": lambda a: a,
}


def in_floats(g: KhronosEmitter, operator: str, operands: list[Any], attributes: Mapping[str, Any]) -> Value:
    """Write a statement on integers in float32. Raises LowerError where numbers may be beyond 2^24."""
    dtype = next(v.dtype for v in operands if isinstance(v, Value) and v.dtype != BOOL)
    bounds = [g.magnitudes.of(operand) for operand in operands]
    if operator in COMPARISONS:
        if min(bounds) >= EXACT:  # rounding keeps the order: one exact side suffices
            raise _refused(g, operator, dtype)
        return g.one(operator, *(_as_float(g, operand) for operand in operands), **attributes)
    if operator.endswith("_reduce"):
        axes = attributes["axes"]
        count = product([operands[0].shape[axis] for axis in axes]) if operator == "sum_reduce" else 1
        most = bounds[0] * float(count)
    else:
        most = _BOUNDS[operator](*bounds)
    if not max(most, *bounds) <= EXACT:  # infinity times 0 is no number
        raise _refused(g, operator, dtype)
    if most > _limit(dtype) or (dtype.kind == "u" and operator in ("sub", "neg")):
        raise g.fail(f"`{operator}` of {dtype} may wrap around, which cannot be expressed in NNEF 1.0")
    found = g.one(operator, *(_as_float(g, operand) for operand in operands), **attributes)
    if operator.startswith("arg"):
        return found
    if operator == "div":  # towards zero, as the integers of PyTorch's kernel are divided
        found = g.select(g.lt(found, 0.0), g.ceil(found), g.floor(found))
    whole = g.cast(found, dtype if dtype.itemsize >= 4 else np.dtype(np.int64))
    g.magnitudes.state(whole, int(most))
    return whole if whole.dtype == dtype else g.cast(whole, dtype)


def _as_float(g: KhronosEmitter, operand: Any) -> Any:
    if not isinstance(operand, Value):
        return float(operand)
    if isinstance(operand.weight, ArrayWeight):
        return g.constant(operand.weight.array.astype(FLOAT32))
    return g.cast(operand, FLOAT32)


def _refused(g: KhronosEmitter, operator: str, dtype: np.dtype[Any]) -> Exception:
    return g.fail(
        f"NNEF 1.0 does not compute with integers: `{operator}` of {dtype} is written in float32, and its numbers may "
        f"be beyond 2^24",
        hint="cast them to float32 in the model, if they are small",
    )


__all__ = ["REAL", "Magnitudes", "in_floats"]
