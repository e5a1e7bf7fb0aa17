"""Size expressions: text that every tract version reads, evaluation, equality."""

from __future__ import annotations

import itertools
import math

import pytest

from t2n_core.nnef.sizes.dims import (
    Dim,
    FloorDiv,
    Max,
    Min,
    Modulo,
    Size,
    as_dim,
    evaluate,
    floor_div,
    product,
    same,
    symbol,
    text,
)

T, B = symbol("T"), symbol("B")


@pytest.mark.parametrize(
    ("dim", "expected"),
    [
        (7, "7"),
        (T, "T"),
        (T - 1, "(T-1)"),
        (3 - T, "(3-T)"),
        (2 * T * B - 1, "(((B*T)*2)-1)"),
        (floor_div(T - 3, 2) + 1, "(((T+1)/2)-1)"),
        (floor_div(floor_div(floor_div(T - 10, 5) - 2, 2) - 2, 2) + 1, "((T/20)-1)"),
        (floor_div(2 * T * B - 7, 2), "((B*T)-4)"),
        (T**2, "(T*T)"),
        (2 * B * T**2, "(((B*T)*T)*2)"),
        (Modulo(T, 4), "(T-((T/4)*4))"),
        (Modulo(FloorDiv(T, 8), 2), "((T/8)-((T/16)*2))"),
        (-T, "(0-T)"),
        (FloorDiv(-T, 4), "(0-((T+3)/4))"),
        (Modulo(-T, 4), "((((T+3)/4)*4)-T)"),
        (Modulo(4 - Modulo(T, 4), 4), "((((T+3)/4)*4)-T)"),
        (FloorDiv(B - 3 * T + 1, 2), "(((B+T+1)/2)-(T*2))"),
    ],
)
def test_text(dim: Dim, expected: str) -> None:
    assert text(as_dim(dim)) == expected


def test_text_with_sums_of_two_terms() -> None:
    assert text(as_dim(FloorDiv(B + T + 1, 2)), of_two=True) == "(((B+T)+1)/2)"
    assert text(as_dim(3 - B - T), of_two=True) == "((3-B)-T)"


class Engine(int):
    """Integers that divide towards zero, as engines do."""

    def __add__(self, other: int) -> Engine:
        return Engine(int(self) + int(other))

    def __sub__(self, other: int) -> Engine:
        return Engine(int(self) - int(other))

    def __mul__(self, other: int) -> Engine:
        return Engine(int(self) * int(other))

    def __truediv__(self, other: int) -> Engine:
        return Engine(math.trunc(int(self) / int(other)))

    def __radd__(self, other: int) -> Engine:
        return Engine(other) + self

    def __rsub__(self, other: int) -> Engine:
        return Engine(other) - self


@pytest.mark.parametrize(
    "dim",
    [
        FloorDiv(-T, 4),
        -FloorDiv(-T, 3),
        FloorDiv(B - 3 * T + 1, 2),
        Modulo(-T, 4),
        Modulo(4 - Modulo(T, 4), 4),
        Modulo(-T - 3, 4),
        Modulo(3 - 2 * T, 5),
        Modulo(B * T - 7, 5),
        FloorDiv(T + Modulo(-T, 4), 4),
    ],
)
def test_text_means_the_same_where_division_goes_towards_zero(dim: Dim) -> None:
    for size, batch in itertools.product(range(1, 30), (1, 2, 7, 40)):
        found = eval(text(dim), {"T": Engine(size), "B": Engine(batch)})
        assert found == evaluate(dim, {"T": size, "B": batch}), (size, batch)


@pytest.mark.parametrize("dim", [FloorDiv(T, B), T / 2])
def test_what_has_no_text_is_refused(dim: Dim) -> None:
    with pytest.raises(ValueError, match=r"cannot be|fraction"):
        text(dim)


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
    "size",
    [
        FloorDiv(Modulo(-T, 4) + 2, 3),
        FloorDiv(Modulo(-T, 4), 2),
        Modulo(Modulo(-T, 2) + 2, 3),
        FloorDiv(Modulo(2 * T, 3) + 1, 2),
        FloorDiv(Modulo(3 * T, 4) + 2, 3),
    ],
)
def test_a_dividend_with_a_remainder_that_engines_misread_is_not_supported(size: Dim) -> None:
    with pytest.raises(ValueError, match="cannot be written so that engines divide it exactly"):
        text(size)


@pytest.mark.parametrize(
    "size",
    [
        FloorDiv(Modulo(T, 4) + 2, 3),
        FloorDiv(Modulo(3 * T, 4), 2),
        FloorDiv(Modulo(-T, 4) + T, 2),
        Modulo(-T, 4),
        Modulo(1 - FloorDiv(T + 1, 2), 4),
    ],
)
def test_a_dividend_with_a_remainder_that_engines_read_right_has_one(size: Dim) -> None:
    assert text(size)


@pytest.mark.parametrize(
    ("one", "other"), [(Max(T, 5), T), (Max(T - 6, 0), T - 6), (Max(1, T - 4), T - 4)], ids=["least", "rest", "cut"]
)
def test_sizes_that_differ_at_small_sizes_alone_are_not_the_same(one: Dim, other: Dim) -> None:
    assert evaluate(one, {"T": 1}) != evaluate(other, {"T": 1})
    assert not same(one, other)
