"""Integer functions of sizes, and what is proven of them from the ranges of the symbols."""

from __future__ import annotations

import itertools
import operator
import pickle
import random
from collections.abc import Callable
from typing import Any

import pytest
import sympy

from t2n_core.nnef.sizes.dims import Dim, FloorDiv, Max, Min, Modulo, as_dim, at_most, evaluate, same, symbol
from t2n_core.nnef.sizes.size_functions import greatest, least

T, B, P = symbol("T"), symbol("B"), symbol("P", 0)
SHORT, LONG = symbol("T", 1, 16), symbol("T", 5)


def test_symbols_with_other_ranges_are_other_symbols() -> None:
    assert symbol("T", 1, 16) == SHORT != T
    assert pickle.loads(pickle.dumps(SHORT)) == SHORT
    assert pickle.loads(pickle.dumps(SHORT)).high == 16


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (Max(0, T - 3), Max(T - 3, 0)),
        (Max(0, LONG - 3), LONG - 3),
        (Min(SHORT, 20), SHORT),
        (Min(T, 3 * FloorDiv(T, 3)), 3 * FloorDiv(T, 3)),
        (Min(T, FloorDiv(T, 3) + 1), FloorDiv(T, 3) + 1),
        (Max(0, FloorDiv(T + 1, 2) - 1), FloorDiv(T + 1, 2) - 1),
        (Max(0, P - 1), Max(P - 1, 0)),
        (Min(B * T, T), T),
        (Max(0, Max(0, T - 2) - Min(2, T)), Max(T - 4, 0)),
        (Max(0, Min(9, T) - Min(3, T)), Max(Min(T, 9) - 3, 0)),
        (as_dim(T - Max(0, T - 3)), Min(T, 3)),
        (Min(Max(T - 2, 4), 2**63 - 1), Max(T - 2, 4)),  # a slice without an end
        (Max(T - 2, -(2**63)), T - 2),
        (Max(T - 2, 2**63 - 1), 2**63 - 1),
        (as_dim(T + Max(0, 64 - T)), Max(T, 64)),
        (as_dim(Min(T, 16) + 2), Min(T, 16) + 2),
        (as_dim(T + 1 + Modulo(-T - 1, 4)), 4 * FloorDiv(T, 4) + 4),
        (as_dim(2 * T + Modulo(3 * T, 5)), 5 * FloorDiv(2 * T + 4, 5)),
        (as_dim(T + Modulo(T, 4)), T + Modulo(T, 4)),
        (as_dim(B + T + Modulo(T + 1, 2) + 2), B + 2 * FloorDiv(T, 2) + 3),
        (as_dim(2 * T + 2 * Modulo(T, 2)), 4 * FloorDiv(T + 1, 2)),
        (FloorDiv(T + Modulo(T, 2) + 1, 2), FloorDiv(T + 1, 2)),
        (FloorDiv(T + 3 - Modulo(T + 3, 6), 6), FloorDiv(T + 3, 6)),
        (as_dim(Min(T, 32) + Max(0, T - 32)), T),
        (as_dim(B + 2 * Max(T, 8) + 2 * Min(T, 8)), B + 2 * T + 16),
        (FloorDiv(B * (4 * FloorDiv(T + 3, 4) - 3), 4 * FloorDiv(T + 3, 4) - 3), B),
        (FloorDiv(B * Max(T, 8) + Max(T, 8), Max(T, 8)), B + 1),
        (as_dim(Min(T, 32) + Max(0, T - 31)), Min(T, 32) + Max(0, T - 31)),
    ],
)
def test_extremes_are_as_short_as_the_ranges_allow(found: Dim, expected: Dim) -> None:
    assert found == expected


EXPRESSIONS = [
    Max(0, T - 7) - Min(T, 5),
    3 * FloorDiv(T - 4, 3) - T,
    FloorDiv(T + B, 2) - 1,
    B * T - T - B + 1,
    Modulo(T, 5) - FloorDiv(T, 9),
    Min(T, 12) * 2 - Max(3, T - 9),
    Max(0, 10 - T) - FloorDiv(30 - T, 2),
    (T - 1) * (B - 1) - Min(T, 4),
]


def test_bounds_are_never_exceeded() -> None:
    for e, time, batch in itertools.product(EXPRESSIONS, range(1, 40), range(1, 8)):
        low, high = least(e), greatest(e)
        value = evaluate(as_dim(e), {"T": time, "B": batch})
        assert low is None or low <= value
        assert high is None or high >= value


def test_a_sum_in_its_shorter_form_is_the_same_number() -> None:
    for e, time, batch in itertools.product(EXPRESSIONS, range(1, 40), range(1, 8)):
        sizes = {sympy.Symbol("T"): time, sympy.Symbol("B"): batch}
        plain = e.xreplace({T: sizes[sympy.Symbol("T")], B: sizes[sympy.Symbol("B")]})
        assert evaluate(as_dim(e), {"T": time, "B": batch}) == int(plain)


EVALUATED: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": FloorDiv,
    "%": Modulo,
    "max": Max,
    "min": Min,
}
NUMBERS: dict[str, Callable[[int, int], int]] = {
    **EVALUATED,
    "//": operator.floordiv,
    "%": operator.mod,
    "max": max,
    "min": min,
}


def _formula(draw: random.Random, depth: int) -> Any:
    if depth == 0 or draw.random() < 0.15:
        return draw.choice(["T", "B", "P", draw.randint(-5, 7)])
    name = draw.choice(["+", "+", "-", "*", "//", "//", "%", "%", "max", "min"])
    right = draw.choice([2, 3, 4]) if name in ("//", "%") else _formula(draw, depth - 1)
    return name, _formula(draw, depth - 1), right


def _calculate(formula: Any, functions: dict[str, Callable[[Any, Any], Any]], sizes: dict[str, Any]) -> Any:
    if not isinstance(formula, tuple):
        return sizes.get(formula, formula)
    name, *operands = formula
    return functions[name](*(_calculate(operand, functions, sizes) for operand in operands))


def test_no_simplification_changes_a_number_and_no_bound_is_exceeded() -> None:
    draw = random.Random(1)
    without_bounds = {"T": (T, (1, 2, 3, 5, 8, 31)), "B": (B, (1, 2, 7)), "P": (P, (0, 1, 4))}
    bounded = {
        "T": (symbol("T", 1, 3), (1, 2, 3)),
        "B": (symbol("B", 2, 4), (2, 3, 4)),
        "P": (symbol("P", 0, 1), (0, 1)),
    }
    for index, formula in enumerate([_formula(draw, 4) for _ in range(500)]):
        ranges = bounded if index % 5 == 4 else without_bounds
        size = sympy.sympify(_calculate(formula, EVALUATED, {name: variable for name, (variable, _) in ranges.items()}))
        low, high = least(size), greatest(size)
        for values in itertools.product(*(numbers for _, numbers in ranges.values())):
            sizes = dict(zip(ranges, values, strict=True))
            number = _calculate(formula, NUMBERS, sizes)
            assert evaluate(as_dim(size), sizes) == number, formula
            assert low is None or low <= number, formula
            assert high is None or high >= number, formula


def test_what_follows_from_ranges() -> None:
    assert at_most(1, T)
    assert not at_most(1, P)
    assert at_most(SHORT, 16)
    assert not at_most(T, 16)
    assert FloorDiv(SHORT + 15, 16) == 1
    assert FloorDiv(SHORT + 16, 16) == FloorDiv(SHORT, 16) + 1
    assert as_dim(SHORT + Modulo(-SHORT, 16)) == 16
    assert Modulo(SHORT + 15, 16) == SHORT - 1
    assert Modulo(SHORT, 16) == Modulo(SHORT, 16, evaluate=False)


def test_sizes_are_compared_at_both_sides_of_every_number() -> None:
    assert not same(Max(T, 5), T)
    assert not same(Min(T, 1000), T)
    assert not same(FloorDiv(T, 500), 0)
    assert same(Max(LONG, 5), LONG)
    assert not same(Max(P, 1), P)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (FloorDiv(Max(T - 2, 0), 2), Max(FloorDiv(T, 2) - 1, 0)),
        (FloorDiv(Min(T, 9) + 1, 2), Min(FloorDiv(T + 1, 2), 5)),
        (FloorDiv(7 - Min(T, 4), 2), Max(-FloorDiv(T, 2) + 3, 1)),
        (as_dim(2 * T + 2 * Max(0, 12 - T)), 2 * Max(T, 12)),
    ],
)
def test_a_quotient_of_an_extreme_is_the_extreme_of_quotients(found: Dim, expected: Dim) -> None:
    assert found == expected
    for time in range(1, 40):
        assert evaluate(as_dim(found), {"T": time}) == evaluate(as_dim(expected), {"T": time})


def test_multiples_of_the_divisor_leave_no_remainder() -> None:
    assert Modulo(4 * FloorDiv(T + 3, 4) + 1, 4) == 1
    assert Modulo(T + 8 * FloorDiv(T, 3) + 5, 4) == Modulo(T + 1, 4)
    assert Modulo(6 * T, 4) == Modulo(6 * T, 4, evaluate=False)
    assert Modulo(B * Modulo(T, 4) + 1, 4) == Modulo(B * T + 1, 4)
    assert Modulo(FloorDiv(Modulo(T, 4), 2), 4) == Modulo(FloorDiv(Modulo(T, 4), 2), 4, evaluate=False)
