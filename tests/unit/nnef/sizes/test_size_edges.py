"""Sizes on both sides of every bound and divisor of an expression."""

from __future__ import annotations

import pytest

from t2n_core.nnef.sizes.dims import Dim, FloorDiv, Max, Min, Modulo, as_dim, symbol
from t2n_core.nnef.sizes.size_edges import edges

T, B = symbol("T"), symbol("B")


@pytest.mark.parametrize(
    ("dim", "expected"),
    [
        (Min(T, 16), [16, 17, 18]),
        (Max(T - 3, 0), [3, 4, 5]),
        (Max(12 - T, 0), [11, 12, 13]),
        (FloorDiv(T + 1, 4), [4, 5]),
        (Modulo(-T, 8), [8, 9]),
        (Min(FloorDiv(T, 4), 64), [4, 5, 259, 260, 261]),
        (T + 3, []),
        (7, []),
    ],
)
def test_edges(dim: Dim, expected: list[int]) -> None:
    assert edges([as_dim(dim)]).get("T", []) == expected


def test_edges_are_in_range() -> None:
    size = symbol("T", 4, 16)
    assert edges([FloorDiv(size, 5)]) == {"T": [5, 6]}
    assert edges([Min(size, 16)]) == {}


def test_conditions_of_two_symbols_have_no_edge_of_one() -> None:
    assert edges([Min(T, B)]) == {}
