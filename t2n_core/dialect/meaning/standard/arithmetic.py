"""Operations on two or three tensors, element by element, with NNEF's broadcasting."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t2n_core.dialect.meaning.broadcasting import aligned
from t2n_core.dialect.registry import defines


@defines("add", result="common")
def add(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """Return x + y.

    Shapes: broadcast, aligned at the first axis.
    Special values: IEEE 754 for floats (inf + -inf is NaN). Integers wrap around.
    Source: NNEF 1.0.5, Binary operations; tract core/src/ops/math/mod.rs for integers.
    """
    x, y = aligned(x, y)
    return np.add(x, y)


@defines("sub", result="common")
def sub(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """Return x - y.

    Shapes: broadcast, aligned at the first axis.
    Special values: IEEE 754 for floats (inf - inf is NaN). Integers wrap around, unsigned ones too.
    Source: NNEF 1.0.5, Binary operations; tract core/src/ops/math/mod.rs for integers.
    """
    x, y = aligned(x, y)
    return np.subtract(x, y)


@defines("mul", result="common")
def mul(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """Return x * y.

    Shapes: broadcast, aligned at the first axis.
    Special values: IEEE 754 for floats (0 * inf is NaN). Integers wrap around.
    Source: NNEF 1.0.5, Binary operations; tract core/src/ops/math/mod.rs for integers.
    """
    x, y = aligned(x, y)
    return np.multiply(x, y)


@defines("div", result="common")
def div(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """Return x / y, for integers rounded towards zero.

    Shapes: broadcast, aligned at the first axis.
    Domain: an integer divisor is not zero; raises ZeroDivisionError.
    Special values: IEEE 754 for floats (1 / 0 is inf, 0 / 0 is NaN). For integers -7 / 2 is -3, and the lowest one
    divided by -1 is itself.
    Source: NNEF 1.0.5, Binary operations; tract core/src/ops/math/mod.rs for integers.
    """
    x, y = aligned(x, y)
    if x.dtype.kind == "f" or y.dtype.kind == "f":
        return np.true_divide(x, y)
    if not np.all(y):
        raise ZeroDivisionError("an integer is divided by zero")
    return (x - np.fmod(x, y)) // y  # the remainder has the sign of x, so that the quotient is exact


@defines("pow", result="common")
def power(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """Return x to the power of y.

    Shapes: broadcast, aligned at the first axis.
    Domain: an integer exponent of an integer is not negative; raises ValueError.
    Special values: as C's `pow`: anything to the power 0 is 1, a negative number to a fraction is NaN, 0 to a negative
    power is inf. Integers wrap around.
    Source: NNEF 1.0.5, Binary operations; IEEE 754-2019, section 9.2.1, for special values.
    """
    x, y = aligned(x, y)
    if x.dtype.kind in "iu" and y.dtype.kind in "iu" and (y < 0).any():
        raise ValueError("an integer has a negative exponent")
    return np.power(x, y)


@defines("min", result="common")
def minimum(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """Return the smaller one of x and y.

    Shapes: broadcast, aligned at the first axis.
    Special values: if one operand is NaN the result is the other one, NaN if both are. The standard's formula
    `x if x < y else y` agrees for a NaN in x, and returns the NaN in y: engines may do so.
    Source: NNEF 1.0.5, Binary Operations; tract core/src/ops/math/mod.rs for NaN (minNum of IEEE 754-2008).
    """
    x, y = aligned(x, y)
    return np.fmin(x, y)


@defines("max", result="common")
def maximum(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """Return the larger one of x and y.

    Shapes: broadcast, aligned at the first axis.
    Special values: if one operand is NaN the result is the other one, NaN if both are. The standard's formula
    `x if x > y else y` agrees for a NaN in x, and returns the NaN in y: engines may do so.
    Source: NNEF 1.0.5, Binary Operations; tract core/src/ops/math/mod.rs for NaN (maxNum of IEEE 754-2008).
    """
    x, y = aligned(x, y)
    return np.fmax(x, y)


@defines("clamp", result="common")
def clamp(x: NDArray[Any], a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Return x limited to the range from a to b: max(min(x, b), a).

    Shapes: broadcast, aligned at the first axis.
    Special values: where a > b the result is a. NaN as in `min` and `max`: a NaN in x becomes b.
    Source: NNEF 1.0.5, Clamp.
    """
    x, a, b = aligned(x, a, b)
    return np.fmax(np.fmin(x, b), a)


@defines("add_n")
def add_n(x: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return the sum of all tensors of a list.

    Shapes: broadcast, aligned at the first axis; the sum of no tensors is a zero of shape [1].
    Special values: as `add`.
    Source: NNEF 1.0.5, Add_n.
    """
    return reduce(add, x) if x else np.zeros(1)
