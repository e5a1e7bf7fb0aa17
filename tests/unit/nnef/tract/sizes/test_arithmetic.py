"""Sizes as tract's own arithmetic works them out right."""

from __future__ import annotations

import itertools

import pytest
import sympy
from packaging.version import Version

from t2n_core.nnef.sizes.dims import Dim, FloorDiv, Max, Min, Modulo, as_dim, evaluate, has_extremes, same, symbol
from t2n_core.nnef.tract.sizes import arithmetic
from t2n_core.nnef.tract.sizes.arithmetic import (
    argument_for,
    as_hinges,
    is_seen_within,
    merge_into_quotients,
    signed_parts,
    with_quotients_subtracted,
    without_differences,
    without_extremes,
    without_nesting,
)
from t2n_core.nnef.tract.traits import traits_of
from tests.releases import NEWEST

T, B = symbol("T"), symbol("B")
HALF, QUARTER = FloorDiv(T, 2), FloorDiv(T, 4)


def _assert_same_number(result: Dim, size: Dim) -> None:
    for length in range(1, 40):
        sizes = {"T": length, "B": 3}
        assert evaluate(result, sizes) == evaluate(as_dim(size), sizes), (size, length)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (7, 7),
        (T - 1, T - 1),
        (T - HALF, FloorDiv(T + 1, 2)),
        (T - HALF + 4, FloorDiv(T + 1, 2) + 4),
        (3 * T - 3 * HALF, 3 * FloorDiv(T + 1, 2)),
        (B * T - B * HALF, B * FloorDiv(T + 1, 2)),
        (T - QUARTER, FloorDiv(3 * T + 3, 4)),
        (FloorDiv(T - HALF, 3), FloorDiv(FloorDiv(T + 1, 2), 3)),
        (B - HALF, B - HALF),
        (T - 3 * QUARTER, T - 3 * QUARTER),
        (T - 2 * QUARTER, T - 2 * QUARTER),
        (2 * T + 2 - 2 * QUARTER, 2 * FloorDiv(3 * T + 7, 4)),
        (2 * T + 1 - 2 * QUARTER, 2 * T + 1 - 2 * QUARTER),
    ],
)
def test_a_subtracted_quotient_is_rounded_up_instead(size: Dim, expected: Dim) -> None:
    result = without_differences(as_dim(size))
    assert result == expected
    _assert_same_number(result, size)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (T - HALF, T - HALF),
        (3 - T, 3 - T),
        (HALF - T, -FloorDiv(T + 1, 2)),
        (HALF - T + 3, 3 - FloorDiv(T + 1, 2)),
        (2 * QUARTER - 2 * T, -2 * FloorDiv(3 * T + 3, 4)),
        (HALF - B, HALF - B),
        (2 * QUARTER - T, 2 * QUARTER - T),
    ],
)
def test_an_outweighed_quotient_is_the_negative_of_one(size: Dim, expected: Dim) -> None:
    result = with_quotients_subtracted(as_dim(size))
    assert result == expected
    _assert_same_number(result, size)


def test_both_keep_the_number_of_any_sum() -> None:
    for times, add, quotients, more, divisor in itertools.product(
        (-2, 1, 3), (-1, 0, 2), (-3, -2, -1, 1, 2), (0, 1), (2, 3)
    ):
        size = times * T + add + quotients * FloorDiv(T + more, divisor)
        for result in (without_differences(size), with_quotients_subtracted(size)):
            _assert_same_number(result, size)


@pytest.mark.parametrize(
    ("bound", "seen"),
    [(0, True), (1, True), (2, False), (T, True), (T - 1, True), (T + 1, False), (HALF, False), (2 * T, False)],
)
def test_what_the_engine_sees_to_be_within_a_size(bound: Dim, seen: bool) -> None:
    assert is_seen_within(bound, T) is seen


def test_within_a_product_of_sizes_nothing_is_seen_but_the_whole() -> None:
    assert is_seen_within(B * T, B * T)
    assert not is_seen_within(T, B * T)
    assert is_seen_within(T, T + HALF)


EXTREMES = [
    Min(T, 16),
    Max(T - 3, 0),
    Max(12 - T, 0),
    Min(T, B),
    Max(T - B, 0) + Min(2 * T, 9),
    FloorDiv(Min(T, 9) + 1, 2),
    Min(T, HALF + 17),
    Max(T - 8, HALF),
]


@pytest.mark.parametrize("size", EXTREMES)
def test_an_extreme_is_a_quotient_where_sizes_have_none(size: Dim) -> None:
    result = without_extremes(as_dim(size))
    assert not has_extremes(result)
    for length, batch in itertools.product(range(1, 40), (1, 3, 20)):
        sizes = {"T": length, "B": batch}
        assert evaluate(result, sizes) == evaluate(as_dim(size), sizes)


def test_a_comparison_inside_of_another_is_one_sum_or_is_not_supported() -> None:
    traits = traits_of(Version("0.20.22"))
    _assert_same_number(argument_for(traits, Max(Min(T, 9) - 3, 0)), Max(Min(T, 9) - 3, 0))
    for nested in (Max(Min(T, B) - 3, HALF), Min(T, B, 5), Max(T, B, 5), Max(T, B, HALF + 3)):
        with pytest.raises(ValueError, match="cannot be written"):
            argument_for(traits, nested)


def test_nested_comparisons_are_refused_before_they_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Written as quotients they grow with each level: three take half a minute."""
    monkeypatch.setattr(arithmetic, "_of_quotients", lambda extreme: pytest.fail(f"{extreme} is written"))
    size: sympy.Expr = T
    for i in range(2, 5):
        size = Min(FloorDiv(Max(size - B, i) + 1, 2) + size, B * i)
    with pytest.raises(ValueError, match="cannot be written"):
        argument_for(traits_of(Version("0.20.22")), size)


def test_a_remainder_that_is_compared_is_not_supported_without_extremes() -> None:
    with pytest.raises(ValueError, match="cannot be written"):
        argument_for(traits_of(Version("0.20.22")), Min(T, Modulo(-T, 8)))
    assert argument_for(traits_of(Version(NEWEST)), Min(T, Modulo(-T, 8))) == Min(T, Modulo(-T, 8))


def test_a_multiple_that_is_compared_has_a_form_without_extremes() -> None:
    size = Max(T + Modulo(-T, 4) - 3, 0)
    argument = argument_for(traits_of(Version("0.20.22")), size)
    assert not has_extremes(argument)
    _assert_same_number(argument, size)


@pytest.mark.parametrize("size", [Min(T, HALF + 17), Max(T - 8, HALF), FloorDiv(T + Min(T, 33) + 1, 2)])
def test_the_difference_that_is_compared_grows(size: Dim) -> None:
    """The engine simplifies a quotient wrongly whose dividend falls with a size and has another quotient in it."""
    expression = sympy.sympify(without_extremes(as_dim(size)))
    compared = [q.args[0] for q in expression.atoms(FloorDiv) if q.args[1] >= 1 << 20]
    values = [[evaluate(dividend, {"T": length}) for length in range(1, 60)] for dividend in compared]
    assert compared
    assert all(series == sorted(series) for series in values)


@pytest.mark.parametrize("size", [T - 3, B - HALF, FloorDiv(B - HALF, 8), 2 * B - 3 * FloorDiv(7 - 2 * T, 4), T - 1])
def test_a_size_is_the_difference_of_two_that_are_never_negative(size: Dim) -> None:
    added, subtracted = signed_parts(as_dim(size))
    for length, batch in itertools.product(range(1, 40), (1, 3, 20)):
        sizes = {"T": length, "B": batch}
        parts = [evaluate(added, sizes), evaluate(subtracted, sizes)]
        assert min(parts) >= 0
        assert parts[0] - parts[1] == evaluate(as_dim(size), sizes)


def test_the_form_depends_on_the_release() -> None:
    bound, old, new = Min(T, 16), traits_of(Version("0.21.6")), traits_of(Version("0.21.7"))
    assert argument_for(new, [bound, 3]) == [bound, 3]
    assert not has_extremes(argument_for(old, [bound])[0])
    assert argument_for(old, "axes") == "axes"


NESTED = [
    Min(Max(T - 2, 0), 5),
    Max(Min(T, 9) - 3, 1),
    Min(Max(T - 2, 0), B),
    Min(HALF, Max(HALF - 3, 2)),
    T * Min(Max(T - 2, 0), 5),
    2 * Min(Max(T - 1, 3), 2 * T),
]


@pytest.mark.parametrize("size", [*NESTED, *EXTREMES])
def test_an_extreme_is_the_sum_of_hinges(size: Dim) -> None:
    for result in (as_hinges(as_dim(size)), without_nesting(as_dim(size))):
        for length, batch in itertools.product(range(1, 40), (1, 3, 20)):
            sizes = {"T": length, "B": batch}
            assert evaluate(result, sizes) == evaluate(as_dim(size), sizes)


@pytest.mark.parametrize("size", NESTED)
def test_nothing_is_nested(size: Dim) -> None:
    result = without_nesting(as_dim(size))
    assert not any(a.has(Max, Min) for extreme in result.atoms(Max, Min) for a in extreme.args)


def test_parts_of_a_size_are_the_size() -> None:
    assert as_hinges(as_dim(Min(T, 32) + Max(T - 32, 0))) == T


def test_what_old_releases_simplify_wrongly_is_not_supported_there() -> None:
    nested = Max(Max(T - 2, FloorDiv(B, 2)) - 3 * FloorDiv(T, 2), 0)
    with pytest.raises(ValueError, match=r"cannot be written so that this release computes it correctly; 0\.21\.7 can"):
        argument_for(traits_of(Version("0.20.22")), as_dim(nested))
    assert argument_for(traits_of(Version("0.21.7")), as_dim(nested)) is not None


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (3 * T + 3 * FloorDiv(T + 2, 3) - 2, 3 * FloorDiv(4 * T + 2, 3) - 2),
        (T + FloorDiv(T, 2), T + FloorDiv(T, 2)),
        (2 * T + 4 * FloorDiv(T, 2), 2 * T + 4 * FloorDiv(T, 2)),
    ],
)
def test_what_is_added_to_a_scaled_quotient_goes_inside(size: sympy.Expr, expected: sympy.Expr) -> None:
    assert merge_into_quotients(as_dim(size)) == expected
    assert same(as_dim(size), as_dim(expected))


def test_a_product_stays_one_where_nothing_is_gathered() -> None:
    """The engine compares it with the product of two axes, and sees no sum of products in that."""
    size = T * (3 - T + FloorDiv(T + B, 2))
    assert merge_into_quotients(size) == size
    assert merge_into_quotients(3 * FloorDiv(T, 2) + 3 * T) == 3 * FloorDiv(3 * T, 2)
