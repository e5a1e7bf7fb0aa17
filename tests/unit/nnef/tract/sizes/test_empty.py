"""The part of a range in which no tensor that is reshaped is empty."""

from __future__ import annotations

import pytest

from t2n_core.nnef.sizes.dims import Dim, FloorDiv, Max, Modulo, as_dim, symbol
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.nnef.tract.sizes.empty import without_empty

T, B, P = symbol("T"), symbol("B"), symbol("P", 0)


@pytest.mark.parametrize(
    ("extent", "expected"),
    [
        (4 * FloorDiv(T, 4), "B >= 1, T >= 4"),
        (Max(T - 3, 0), "B >= 1, T >= 4"),
        (FloorDiv(T + 1, 2), "B >= 1, T >= 1"),
        (T, "B >= 1, T >= 1"),
        (Max(9 - T, 0), "B >= 1, T >= 1"),
        (Modulo(T, 4), "B >= 1, T >= 1"),
        (3, "B >= 1, T >= 1"),
    ],
)
def test_the_range_begins_where_nothing_is_empty(extent: Dim, expected: str) -> None:
    assert str(without_empty(SizeRange.of(["B", "T"]), (B, as_dim(extent), 4))) == expected


def test_an_axis_that_is_declared_to_be_empty_stays() -> None:
    assert str(without_empty(SizeRange({"P": (0, None)}), (P, 4))) == "P >= 0"
