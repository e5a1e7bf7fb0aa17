"""Operators on bits and booleans, and the tests for NaN and infinities."""

from __future__ import annotations

import numpy as np

from t2n_core.dialect.arrays import Array
from t2n_core.dialect.registry import defines


@defines("tract_core_xor", result="bool")
def xor(x: Array, y: Array) -> Array:
    """Return True where exactly one of two booleans is True.

    Shapes: broadcast. Domain: booleans; a number counts as True where it is not 0.
    Source: ONNX Xor-7; tract core/src/ops/logic.rs.
    """
    return np.asarray((x != 0) ^ (y != 0))


@defines("tract_core_bitand")
def bitand(x: Array, y: Array) -> Array:
    """Return the conjunction of the bits of two integers or booleans, element by element.

    Shapes: broadcast. Domain: integers and booleans of one type; negative integers in two's complement.
    Source: ONNX BitwiseAnd-18; tract core/src/ops/logic.rs.
    """
    return np.asarray(np.bitwise_and(x, y))


@defines("tract_core_bitor")
def bitor(x: Array, y: Array) -> Array:
    """Return the disjunction of the bits of two integers or booleans, element by element.

    Shapes: broadcast. Domain: integers and booleans of one type; negative integers in two's complement.
    Source: ONNX BitwiseOr-18; tract core/src/ops/logic.rs.
    """
    return np.asarray(np.bitwise_or(x, y))


@defines("tract_core_bitxor")
def bitxor(x: Array, y: Array) -> Array:
    """Return the exclusive disjunction of the bits of two integers or booleans, element by element.

    Shapes: broadcast. Domain: integers and booleans of one type; negative integers in two's complement.
    Source: ONNX BitwiseXor-18; tract core/src/ops/logic.rs.
    """
    return np.asarray(np.bitwise_xor(x, y))


@defines("tract_core_bitnot")
def bitnot(x: Array) -> Array:
    """Return the complement of the bits of an integer, or the negation of a boolean.

    Special values: -x - 1 for a signed integer, the greatest value minus x for an unsigned one.
    Source: ONNX BitwiseNot-18; tract core/src/ops/logic.rs.
    """
    return np.asarray(np.invert(x))


@defines("tract_shl")
def shl(x: Array, y: Array) -> Array:
    """Return x shifted left by y bits, element by element.

    Shapes: broadcast. Formula: x * 2^y modulo the width of the type. Domain: integers of one type, 0 <= y < width;
    raises ValueError for another shift.
    Source: ONNX BitShift-11; tract core/src/ops/math/mod.rs.
    """
    return np.asarray(np.left_shift(x, _shifts(y)))


@defines("tract_shr")
def shr(x: Array, y: Array) -> Array:
    """Return x shifted right by y bits, element by element.

    Shapes: broadcast. Formula: floor(x / 2^y): the sign is kept. Domain: integers of one type, 0 <= y < width; raises
    ValueError for another shift.
    Source: ONNX BitShift-11; tract core/src/ops/math/mod.rs.
    """
    return np.asarray(np.right_shift(x, _shifts(y)))


def _shifts(bits: Array) -> Array:
    if ((bits < 0) | (bits >= bits.itemsize * 8)).any():
        raise ValueError(f"a shift by {bits.min()} to {bits.max()} bits has no meaning in {bits.dtype}")
    return bits


@defines("tract_core_is_nan", "tract_onnx_is_nan", result="bool")
def is_nan(x: Array) -> Array:
    """Return True where a float is NaN.

    Special values: infinities are not NaN.
    Source: ONNX IsNaN-13; tract core/src/ops/math/mod.rs.
    """
    return np.asarray(np.isnan(x))


@defines("tract_core_is_inf", "tract_onnx_isinf", result="bool")
def is_inf(input: Array, detect_positive: bool = True, detect_negative: bool = True) -> Array:
    """Return True where a float is infinite, of the signs that are asked for.

    Special values: NaN is not infinite; with both arguments False nothing is.
    Source: ONNX IsInf-10; tract core/src/ops/math/mod.rs.
    """
    return np.asarray((np.isposinf(input) & detect_positive) | (np.isneginf(input) & detect_negative))
