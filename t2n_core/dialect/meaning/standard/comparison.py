"""Comparisons, operations on logical tensors, and the choice between two tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from t2n_core.dialect.meaning.broadcasting import aligned
from t2n_core.dialect.registry import defines


@defines("lt", result="bool", common=True)
def less(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """Return whether x < y.

    Shapes: broadcast, aligned at the first axis.
    Special values: false where an operand is NaN.
    Source: NNEF 1.0.5, Comparison operations.
    """
    x, y = aligned(x, y)
    return np.less(x, y)


@defines("gt", result="bool", common=True)
def greater(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """Return whether x > y.

    Shapes: broadcast, aligned at the first axis.
    Special values: false where an operand is NaN.
    Source: NNEF 1.0.5, Comparison operations.
    """
    x, y = aligned(x, y)
    return np.greater(x, y)


@defines("le", result="bool", common=True)
def less_or_equal(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """Return whether x <= y.

    Shapes: broadcast, aligned at the first axis.
    Special values: false where an operand is NaN.
    Source: NNEF 1.0.5, Comparison operations.
    """
    x, y = aligned(x, y)
    return np.less_equal(x, y)


@defines("ge", result="bool", common=True)
def greater_or_equal(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """Return whether x >= y.

    Shapes: broadcast, aligned at the first axis.
    Special values: false where an operand is NaN.
    Source: NNEF 1.0.5, Comparison operations.
    """
    x, y = aligned(x, y)
    return np.greater_equal(x, y)


@defines("eq", result="bool", common=True)
def equal(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """Return whether x equals y.

    Shapes: broadcast, aligned at the first axis.
    Special values: NaN equals nothing, 0.0 equals -0.0, an infinity equals itself.
    Source: NNEF 1.0.5, Comparison operations.
    """
    x, y = aligned(x, y)
    return np.equal(x, y)


@defines("ne", result="bool", common=True)
def not_equal(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """Return whether x differs from y.

    Shapes: broadcast, aligned at the first axis.
    Special values: NaN differs from everything, also from itself.
    Source: NNEF 1.0.5, Comparison operations.
    """
    x, y = aligned(x, y)
    return np.not_equal(x, y)


@defines("and", result="bool")
def logical_and(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """Return whether both x and y are true.

    Shapes: broadcast, aligned at the first axis.
    Source: NNEF 1.0.5, Logical operations.
    """
    x, y = aligned(x, y)
    return np.logical_and(x, y)


@defines("or", result="bool")
def logical_or(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """Return whether x, y or both are true.

    Shapes: broadcast, aligned at the first axis.
    Source: NNEF 1.0.5, Logical operations.
    """
    x, y = aligned(x, y)
    return np.logical_or(x, y)


@defines("not", result="bool")
def logical_not(x: NDArray[Any]) -> NDArray[Any]:
    """Return whether x is false.

    Source: NNEF 1.0.5, Unary operations.
    """
    return np.logical_not(x)


@defines("select", result="true_value")
def select(condition: NDArray[Any], true_value: NDArray[Any], false_value: NDArray[Any]) -> NDArray[Any]:
    """Return the elements of `true_value` where the condition is true, and of `false_value` elsewhere.

    Shapes: all three broadcast, aligned at the first axis. The values have the same data type.
    Special values: what is not chosen has no effect, NaN included.
    Source: NNEF 1.0.5, Select.
    """
    condition, true_value, false_value = aligned(condition, true_value, false_value)
    return np.where(condition, true_value, false_value)
