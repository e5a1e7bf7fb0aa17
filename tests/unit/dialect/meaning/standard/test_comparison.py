"""Comparisons of three numbers below, at and above another, and the operations on booleans."""

from __future__ import annotations

import numpy as np
import pytest

from t2n_core.dialect.operators import functions


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("lt", [True, False, False]),
        ("le", [True, True, False]),
        ("gt", [False, False, True]),
        ("ge", [False, True, True]),
        ("eq", [False, True, False]),
        ("ne", [True, False, True]),
    ],
)
def test_comparisons(op: str, expected: list[bool]) -> None:
    assert functions()[op].function(np.asarray([1, 2, 3]), np.asarray([2, 2, 2])).tolist() == expected


@pytest.mark.parametrize(("op", "expected"), [("and", [True, False, False, False]), ("or", [True, True, True, False])])
def test_two_booleans(op: str, expected: list[bool]) -> None:
    flags = np.asarray([True, True, False, False]), np.asarray([True, False, True, False])
    assert functions()[op].function(*flags).tolist() == expected


@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "pow", "min", "max", "lt", "gt", "le", "ge", "eq", "ne"])
def test_the_second_operand_belongs_to_the_first_axis(op: str) -> None:
    function = functions()[op].function
    rows, column = np.asarray([[1.0, 2.0], [3.0, 5.0]]), np.asarray([2.0, 3.0])
    result = function(rows, column)
    assert result.tolist() == [function(rows[at], column[at]).tolist() for at in range(2)]
