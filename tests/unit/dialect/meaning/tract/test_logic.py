"""Bits, booleans, NaN and infinities."""

import math

import numpy as np
import pytest

from t2n_core.dialect.meaning.tract.logic import bitand, bitnot, bitor, bitxor, is_inf, is_nan, shl, shr, xor


def test_xor() -> None:
    flags = np.asarray([True, True, False, False]), np.asarray([True, False, True, False])
    assert xor(*flags).tolist() == [False, True, True, False]


def test_bits_of_negative_integers() -> None:
    x, y = np.asarray([-1, -2, 6], dtype=np.int8), np.asarray([12, 12, 12], dtype=np.int8)
    assert bitand(x, y).tolist() == [12, 12, 4]
    assert bitor(x, y).tolist() == [-1, -2, 14]
    assert bitxor(x, y).tolist() == [-13, -14, 10]


def test_complement() -> None:
    assert bitnot(np.asarray([0, -1, 5], dtype=np.int16)).tolist() == [-1, 0, -6]
    assert bitnot(np.asarray([0, 5], dtype=np.uint8)).tolist() == [255, 250]
    assert bitnot(np.asarray([True, False])).tolist() == [False, True]


def test_shifts() -> None:
    assert shl(np.asarray([3, -3, 64], dtype=np.int8), np.asarray([1, 1, 1], dtype=np.int8)).tolist() == [6, -6, -128]
    assert shr(np.asarray([7, -7, -8], dtype=np.int8), np.asarray([1, 1, 2], dtype=np.int8)).tolist() == [3, -4, -2]


def test_is_nan() -> None:
    assert is_nan(np.asarray([0.0, math.nan, math.inf])).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [((), [True, True, False]), ((True, False), [True, False, False]), ((False, True), [False, True, False])],
)
def test_is_inf(arguments: tuple[bool, ...], expected: list[bool]) -> None:
    assert is_inf(np.asarray([math.inf, -math.inf, math.nan]), *arguments).tolist() == expected
    assert not is_inf(np.asarray([math.inf]), False, False).any()
