"""Sizes as text that every tract version reads."""

from __future__ import annotations

import itertools
import math

import pytest

from t2n_core.nnef.sizes.dims import Dim, FloorDiv, Max, Min, Modulo, as_dim, evaluate, floor_div, symbol
from t2n_core.nnef.tract.sizes.printer import size_text

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
    assert size_text(as_dim(dim)) == expected


def test_text_with_sums_of_two_terms() -> None:
    assert size_text(as_dim(FloorDiv(B + T + 1, 2)), of_two=True) == "(((B+T)+1)/2)"
    assert size_text(as_dim(3 - B - T), of_two=True) == "((3-B)-T)"


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
        value = eval(size_text(dim), {"T": Engine(size), "B": Engine(batch)})
        assert value == evaluate(dim, {"T": size, "B": batch}), (size, batch)


@pytest.mark.parametrize("dim", [FloorDiv(T, B), T / 2])
def test_what_has_no_text_is_refused(dim: Dim) -> None:
    with pytest.raises(ValueError, match=r"cannot be|fraction"):
        size_text(dim)


def test_extremes_are_written_with_two_operands() -> None:
    assert size_text(Min(T, B, 3)) == "min(min(B,T),3)"
    assert size_text(as_dim(2 * Max(T, 5) - 1)) == "((max(T,5)*2)-1)"


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
def test_a_dividend_with_a_remainder_that_engines_misread_is_refused(size: Dim) -> None:
    with pytest.raises(ValueError, match="cannot be written so that engines divide it exactly"):
        size_text(size)


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
    assert size_text(size)
