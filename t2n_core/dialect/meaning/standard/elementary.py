"""Functions of one tensor, element by element: powers, logarithms, angles, signs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from t2n_core.dialect.registry import defines


@defines("abs")
def absolute(x: NDArray[Any]) -> NDArray[Any]:
    """Return |x|.

    Special values: |-inf| is inf, |NaN| is NaN. The lowest signed integer stays itself.
    Source: NNEF 1.0.5, Unary operations.
    """
    return np.abs(x)


@defines("neg")
def negative(x: NDArray[Any]) -> NDArray[Any]:
    """Return -x.

    Special values: the negative of 0.0 is -0.0. The lowest signed integer stays itself.
    Source: NNEF 1.0.5, Unary operations.
    """
    return np.negative(x)


@defines("sign")
def sign(x: NDArray[Any]) -> NDArray[Any]:
    """Return 1 where x > 0, -1 where x < 0, and 0 where x is zero.

    Special values: NaN for NaN, 0 for -0.0.
    Source: NNEF 1.0.5, Unary operations.
    """
    return np.sign(x)


@defines("copy")
def copy(x: NDArray[Any]) -> NDArray[Any]:
    """Return x.

    Source: NNEF 1.0.5, Unary operations.
    """
    return np.asarray(x)


@defines("rcp", "recip")
def reciprocal(x: NDArray[Any]) -> NDArray[Any]:
    """Return 1 / x.

    Special values: inf for 0.0, -inf for -0.0, 0 for infinities.
    Source: NNEF 1.0.5, Rcp; tract names it `recip`.
    """
    return np.true_divide(1.0, x)


@defines("sqr", "square")
def square(x: NDArray[Any]) -> NDArray[Any]:
    """Return x * x.

    Special values: inf for infinities. Integers wrap around.
    Source: NNEF 1.0.5, Sqr; tract names it `square` too.
    """
    return np.multiply(x, x)


@defines("sqrt")
def square_root(x: NDArray[Any]) -> NDArray[Any]:
    """Return the square root of x.

    Special values: NaN for x < 0; -0.0 for -0.0; inf for inf.
    Source: NNEF 1.0.5, Unary operations.
    """
    return np.sqrt(x)


@defines("rsqr")
def reciprocal_square(x: NDArray[Any]) -> NDArray[Any]:
    """Return 1 / x².

    Special values: inf for zeros, 0 for infinities.
    Source: NNEF 1.0.5, Unary operations.
    """
    return np.true_divide(1.0, np.multiply(x, x))


@defines("rsqrt")
def reciprocal_square_root(x: NDArray[Any]) -> NDArray[Any]:
    """Return 1 / sqrt(x).

    Special values: inf for 0.0, NaN for x < 0, 0 for inf.
    Source: NNEF 1.0.5, Unary operations.
    """
    return np.true_divide(1.0, np.sqrt(x))


@defines("exp")
def exponential(x: NDArray[Any]) -> NDArray[Any]:
    """Return e to the power of x.

    Special values: 0 for -inf, inf for inf, and above the largest exponent of the data type.
    Source: NNEF 1.0.5, Unary operations.
    """
    return np.exp(x)


@defines("log")
def logarithm(x: NDArray[Any]) -> NDArray[Any]:
    """Return the natural logarithm of x.

    Special values: -inf for zeros, NaN for x < 0, inf for inf.
    Source: NNEF 1.0.5, Unary operations.
    """
    return np.log(x)


@defines("log2")
def binary_logarithm(x: NDArray[Any]) -> NDArray[Any]:
    """Return the logarithm of x to base 2.

    Special values: -inf for zeros, NaN for x < 0, inf for inf.
    Source: NNEF 1.0.5, Unary operations.
    """
    return np.log2(x)


@defines("sin")
def sine(x: NDArray[Any]) -> NDArray[Any]:
    """Return the sine of x, in radians.

    Special values: NaN for infinities.
    Source: NNEF 1.0.5, Unary operations.
    """
    return np.sin(x)


@defines("cos")
def cosine(x: NDArray[Any]) -> NDArray[Any]:
    """Return the cosine of x, in radians.

    Special values: NaN for infinities.
    Source: NNEF 1.0.5, Unary operations.
    """
    return np.cos(x)


@defines("tan")
def tangent(x: NDArray[Any]) -> NDArray[Any]:
    """Return the tangent of x, in radians.

    Special values: NaN for infinities.
    Source: NNEF 1.0.5, Unary operations.
    """
    return np.tan(x)


@defines("asin")
def arc_sine(x: NDArray[Any]) -> NDArray[Any]:
    """Return the angle from -pi/2 to pi/2 whose sine is x.

    Special values: NaN for |x| > 1.
    Source: NNEF 1.0.5, Unary operations.
    """
    return np.arcsin(x)


@defines("acos")
def arc_cosine(x: NDArray[Any]) -> NDArray[Any]:
    """Return the angle from 0 to pi whose cosine is x.

    Special values: NaN for |x| > 1.
    Source: NNEF 1.0.5, Unary operations.
    """
    return np.arccos(x)


@defines("atan")
def arc_tangent(x: NDArray[Any]) -> NDArray[Any]:
    """Return the angle from -pi/2 to pi/2 whose tangent is x.

    Special values: the ends of the range for infinities.
    Source: NNEF 1.0.5, Unary operations.
    """
    return np.arctan(x)


@defines("sinh")
def hyperbolic_sine(x: NDArray[Any]) -> NDArray[Any]:
    """Return (e^x - e^-x) / 2.

    Special values: infinities for infinities.
    Source: NNEF 1.0.5, Unary operations.
    """
    return np.sinh(x)


@defines("cosh")
def hyperbolic_cosine(x: NDArray[Any]) -> NDArray[Any]:
    """Return (e^x + e^-x) / 2.

    Special values: inf for infinities.
    Source: NNEF 1.0.5, Unary operations.
    """
    return np.cosh(x)


@defines("asinh")
def area_hyperbolic_sine(x: NDArray[Any]) -> NDArray[Any]:
    """Return the value whose hyperbolic sine is x.

    Special values: infinities for infinities.
    Source: NNEF 1.0.5, Unary operations.
    """
    return np.arcsinh(x)


@defines("acosh")
def area_hyperbolic_cosine(x: NDArray[Any]) -> NDArray[Any]:
    """Return the value >= 0 whose hyperbolic cosine is x.

    Special values: NaN for x < 1, inf for inf.
    Source: NNEF 1.0.5, Unary operations.
    """
    return np.arccosh(x)


@defines("atanh")
def area_hyperbolic_tangent(x: NDArray[Any]) -> NDArray[Any]:
    """Return the value whose hyperbolic tangent is x.

    Special values: infinities for 1 and -1, NaN for |x| > 1.
    Source: NNEF 1.0.5, Unary operations.
    """
    return np.arctanh(x)
