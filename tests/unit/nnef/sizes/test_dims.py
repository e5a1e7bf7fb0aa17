"""Size expressions: evaluation, equality."""

from __future__ import annotations

import pytest

from t2n_core.nnef.sizes.dims import Dim, FloorDiv, Max, Min, Size, evaluate, floor_div, product, same, symbol

T, B = symbol("T"), symbol("B")


def test_evaluate() -> None:
    assert evaluate(floor_div(T - 3, 2) + B, {"T": 8, "B": 5}) == 7
    with pytest.raises(KeyError):
        evaluate(T, {"B": 1})


@pytest.mark.parametrize("high", [48, 64, 500, 5000])
def test_sizes_differ_if_they_do_anywhere_in_a_range(high: int) -> None:
    size = Size("S", 1, high)
    assert not same(Min(FloorDiv(size, 4), high // 4 - 2), FloorDiv(size, 4))
    assert same(Min(FloorDiv(size, 4), high // 4), FloorDiv(size, 4))


def test_same() -> None:
    assert same(floor_div(2 * T, 2), T)
    assert same(product([T, 2, B]), 2 * B * T)
    assert not same(floor_div(T, 2) * 2, T)
    assert not same(T, B)
    assert not same(T, 7)


def test_a_floor_division_that_is_exact_is_done() -> None:
    assert FloorDiv(12 * B, B) == 12
    assert FloorDiv(T**2, T) == T
    assert FloorDiv(6 * T * B, 2 * B) == 3 * T
    assert isinstance(FloorDiv(3 * T, 2), FloorDiv)
    assert isinstance(FloorDiv(T * B, T + 1), FloorDiv)


def test_halves_of_halves_are_told_apart() -> None:
    eighth = FloorDiv(FloorDiv(FloorDiv(T - 1, 2), 2), 2)  # even at 7, 24 and 101
    assert not same(eighth, 2 * FloorDiv(eighth, 2))
    assert same(FloorDiv(T - 1, 8), eighth)


def test_a_multiple_is_divided() -> None:
    half = FloorDiv(T - 1, 2)
    assert FloorDiv(4 * half + 2 * T, 2) == 2 * half + T
    assert FloorDiv(3 * half, 2) != half


@pytest.mark.parametrize(
    ("one", "other"), [(Max(T, 5), T), (Max(T - 6, 0), T - 6), (Max(1, T - 4), T - 4)], ids=["least", "rest", "cut"]
)
def test_sizes_that_differ_at_small_sizes_alone_are_not_the_same(one: Dim, other: Dim) -> None:
    assert evaluate(one, {"T": 1}) != evaluate(other, {"T": 1})
    assert not same(one, other)
