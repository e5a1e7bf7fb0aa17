"""Reductions along one axis and along several."""

from __future__ import annotations

import numpy as np
import pytest

from t2n_core.dialect.operators import functions

TABLE = np.asarray([[3.0, 9.0, 6.0], [1.0, 5.0, 6.0]])


@pytest.mark.parametrize(
    ("op", "axes", "expected"),
    [
        ("sum_reduce", [0], [[4.0, 14.0, 12.0]]),
        ("sum_reduce", [1, 0], [[30.0]]),
        ("mean_reduce", [1], [[6.0], [4.0]]),
        ("mean_reduce", [0, 1], [[5.0]]),
        ("max_reduce", [1], [[9.0], [6.0]]),
        ("max_reduce", [0, 1], [[9.0]]),
        ("min_reduce", [0], [[1.0, 5.0, 6.0]]),
        ("min_reduce", [0, 1], [[1.0]]),
        ("argmax_reduce", [1], [[1], [2]]),
        ("argmax_reduce", [0], [[0, 0, 0]]),
        ("argmax_reduce", [1, 0], [[1]]),
        ("argmin_reduce", [0], [[1, 1, 0]]),
        ("argmin_reduce", [0, 1], [[3]]),
        ("sum_reduce", [], TABLE.tolist()),
    ],
)
def test_reductions(op: str, axes: list[int], expected: list[list[float]]) -> None:
    assert functions()[op].function(TABLE, axes).tolist() == expected


@pytest.mark.parametrize(
    ("op", "expected"), [("argmax_reduce", [[[1, 0]], [[0, 2]]]), ("argmin_reduce", [[[0, 1]], [[1, 0]]])]
)
def test_the_first_place_along_an_axis_in_the_middle(op: str, expected: list[list[list[int]]]) -> None:
    blocks = np.asarray([[[1, 8], [7, 2], [4, 5]], [[9, 0], [3, 6], [3, 7]]])
    assert functions()[op].function(blocks, [1]).tolist() == expected


def test_any_and_all() -> None:
    flags = np.asarray([[True, False], [True, True]])
    results = [functions()[op].function(flags, [1]).tolist() for op in ("any_reduce", "all_reduce")]
    assert results == [[[True], [True]], [[False], [True]]]
    assert functions()["any_reduce"].function(~flags, [0, 1]).tolist() == [[True]]
    assert functions()["all_reduce"].function(flags, [0, 1]).tolist() == [[False]]


def test_moments() -> None:
    mean, variance = functions()["moments"].function(TABLE, [1])
    assert mean.tolist() == [[6.0], [4.0]]
    np.testing.assert_allclose(variance, [[6.0], [14 / 3]])


def test_normalised_integers_are_divided_towards_zero() -> None:
    function = functions()["sum_reduce"].function
    assert function(np.asarray([[7, 4], [-7, -4], [0, 0]]), [1], True).tolist() == [[5], [-5], [0]]
