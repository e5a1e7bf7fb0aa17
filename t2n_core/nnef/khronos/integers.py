"""Integer arithmetic, which the standard does not have: computed in `scalar`, where that is exact.

A float32 represents every integer up to 2^24. So an operation on integers is written in float32 if the elements of its
operands and its result are proven to be that small: positions, indices, counts, booleans. All others are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from t2n_core.nnef.dat import ArrayWeight
from t2n_core.nnef.graph import BOOL, FLOAT32, Value
from t2n_core.nnef.khronos.builder import KhronosBuilder
from t2n_core.nnef.khronos.magnitudes import largest
from t2n_core.nnef.sizes.dims import product

EXACT = 2**24
"""The largest integer up to which float32 represents every integer."""
COMPARISONS = frozenset(["lt", "gt", "le", "ge", "eq", "ne"])
REAL = COMPARISONS | frozenset(
    "add sub mul div neg abs max min sum_reduce max_reduce min_reduce argmax_reduce argmin_reduce".split()
)
"""Operators that the standard defines for real numbers alone."""


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


def in_floats(g: KhronosBuilder, operator: str, operands: list[Any], attributes: Mapping[str, Any]) -> Value:
    """Write an operation on integers in float32. Raises LowerError where values may be beyond 2^24."""
    dtype = next(v.dtype for v in operands if isinstance(v, Value) and v.dtype != BOOL)
    bounds = [g.magnitudes.of(operand) for operand in operands]
    if operator in COMPARISONS:
        if min(bounds) >= EXACT:  # rounding preserves the order: one exact side suffices
            raise _error(g, operator, dtype)
        return g.one(operator, *(_as_float(g, operand) for operand in operands), **attributes)
    if operator.endswith("_reduce"):
        axes = attributes["axes"]
        count = product([operands[0].shape[axis] for axis in axes]) if operator == "sum_reduce" else 1
        most = bounds[0] * float(count)
    else:
        most = _BOUNDS[operator](*bounds)
    if not max(most, *bounds) <= EXACT:  # infinity times 0 is NaN
        raise _error(g, operator, dtype)
    if most > largest(dtype) or (dtype.kind == "u" and operator in ("sub", "neg")):
        raise g.fail(f"`{operator}` of {dtype} may wrap around, which cannot be expressed in NNEF 1.0")
    result = g.one(operator, *(_as_float(g, operand) for operand in operands), **attributes)
    if operator.startswith("arg"):
        return result
    if operator == "div":  # towards zero, as PyTorch's kernel divides integers
        result = g.select(g.lt(result, 0.0), g.ceil(result), g.floor(result))
    integer = g.cast(result, dtype if dtype.itemsize >= 4 else np.dtype(np.int64))
    g.magnitudes.state(integer, int(most))
    return integer if integer.dtype == dtype else g.cast(integer, dtype)


def _as_float(g: KhronosBuilder, operand: Any) -> Any:
    if not isinstance(operand, Value):
        return float(operand)
    if isinstance(operand.weight, ArrayWeight):
        return g.constant(operand.weight.array.astype(FLOAT32))
    return g.cast(operand, FLOAT32)


def _error(g: KhronosBuilder, operator: str, dtype: np.dtype[Any]) -> Exception:
    return g.fail(
        f"NNEF 1.0 does not compute with integers: `{operator}` of {dtype} is written in float32, and its values may "
        f"be beyond 2^24",
        hint="cast them to float32 in the model, if they are small",
    )
