"""Sizes on the other side of a decision are solved for, or proven not to be there."""

from __future__ import annotations

import random
from typing import Any

import pytest
import sympy

from t2n_core.nnef.sizes.dims import FloorDiv, Max, Min, Modulo, symbol
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.torch_graph.constraints.eventual import UnsolvedError, course
from t2n_core.torch_graph.constraints.solving import OtherSide, holds, other_side, truths

H, W, T, S = (symbol(name) for name in "HWTS")


def unequal(left: Any, right: Any) -> Any:
    return sympy.Ne(left, right, evaluate=False)


def equal(left: Any, right: Any) -> Any:
    return sympy.Eq(left, right, evaluate=False)


def side_of(condition: Any, **captured: int) -> OtherSide:
    return other_side(condition, SizeRange.of(captured), captured)


@pytest.mark.parametrize(
    ("condition", "captured", "found"),
    [
        (unequal(H * W, 196), {"H": 8, "W": 6}, {"H": 14, "W": 14}),
        (unequal(H * W, 1 << 20), {"H": 8, "W": 6}, {"H": 1 << 14, "W": 64}),
        (unequal(T + S, 300), {"S": 5, "T": 7}, {"S": 150, "T": 150}),
        (unequal(T - S, 20), {"S": 5, "T": 7}, {"S": 2, "T": 22}),
        (unequal(T**3 + S, 1_000_003), {"S": 6, "T": 8}, {"S": 3, "T": 100}),
        (unequal(T**2, 40_000), {"T": 7}, {"T": 200}),
        (unequal(Modulo(T, 61), 7), {"T": 9}, {"T": 7}),
        (equal(Modulo(H * W, 25), 0), {"H": 5, "W": 10}, {"H": 2, "W": 2}),
    ],
)
def test_sizes_on_the_other_side_are_solved_for(condition: Any, captured: dict[str, int], found: Any) -> None:
    side = side_of(condition, **captured)
    assert side.points[0] == found
    assert not any(holds(condition, point) for point in side.points)


def test_few_sizes_on_the_other_side_are_all_of_them() -> None:
    assert side_of(unequal(T**2, 40_000), T=7) == OtherSide(({"T": 200},), complete=True)
    pieces = FloorDiv(T + FloorDiv(T + 1, 2) - 1, FloorDiv(T + 1, 2))
    assert side_of(equal(pieces, 2), T=7) == OtherSide(({"T": 1},), complete=True)
    assert not side_of(unequal(Modulo(T, 61), 7), T=9).complete


@pytest.mark.parametrize(
    ("condition", "captured"),
    [
        (equal(8 * T + 8 * Modulo(-T, 4), 32 * FloorDiv(T + 3, 4)), {"T": 7}),
        (equal(8 * FloorDiv(T + 1, 2) + 8 * Modulo(-FloorDiv(T + 1, 2), 4), 32 * FloorDiv(T + 7, 8)), {"T": 7}),
        (sympy.Ge(FloorDiv(T + 1, 2), 1, evaluate=False), {"T": 7}),
        (unequal(12 * FloorDiv(H + 1, 2) * FloorDiv(W + 1, 2), 0), {"H": 4, "W": 4}),
        (sympy.Ge(T * T + 9, 6 * T, evaluate=False), {"T": 7}),
    ],
)
def test_the_other_side_is_proven_to_be_empty(condition: Any, captured: dict[str, int]) -> None:
    assert side_of(condition, **captured).is_empty


def test_conditions_of_the_range_take_part_in_a_proof() -> None:
    even = [equal(Modulo(size, 2), 0) for size in (H, W)]
    sizes = SizeRange.of(["H", "W"]).narrowed(*even)
    product = equal(H * W, 4 * FloorDiv(H, 2) * FloorDiv(W, 2))
    assert other_side(product, sizes, {"H": 4, "W": 6}).is_empty
    assert not other_side(product, SizeRange.of(["H", "W"]), {"H": 4, "W": 6}).is_empty
    both_one = sympy.Or(sympy.Gt(T, 1, evaluate=False), sympy.Gt(S, 1, evaluate=False), equal(T, S), evaluate=False)
    assert side_of(both_one, T=5, S=4).is_empty


def test_a_far_bound_is_exact() -> None:
    assert truths(sympy.Lt(T, (1 << 40) - 1, evaluate=False), "T", 1, None).around(7) == (None, (1 << 40) - 2)


def random_size(chance: random.Random, depth: int) -> Any:
    if not depth:
        return chance.choice([T, T, sympy.Integer(chance.randint(0, 9))])
    a, b = (random_size(chance, depth - 1) for _ in range(2))
    number = chance.randint(2, 5)
    return chance.choice(
        [a + b, a - b, a * b, FloorDiv(a, number), FloorDiv(a, b * b + 1), Modulo(a, number), Max(a, b), Min(a, b)]
    )


def test_random_conditions_are_periodic_from_where_they_are_said_to_be() -> None:
    chance, solved = random.Random(4), 0
    for _ in range(150):
        kind = chance.choice([sympy.Eq, sympy.Ge, sympy.Lt])
        condition = kind(random_size(chance, 2), random_size(chance, 1), evaluate=False)
        try:
            pattern = course(condition, "T", {})
        except UnsolvedError:
            continue
        if pattern.start < 3000:
            stop = pattern.start + 2 * pattern.period + 300
            flags = [holds(condition, {"T": n}) for n in range(pattern.start, stop)]
            assert flags[pattern.period :] == flags[: -pattern.period], condition
            solved += 1
    assert solved > 100
