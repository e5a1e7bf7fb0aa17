"""Ranges of sizes: what is in them, what is just outside, and how they are told."""

from __future__ import annotations

from typing import Any

import pytest
import sympy
from sympy import Eq, Ge, Gt, Le, Lt, Ne, true

from t2n_core.nnef.sizes.dims import FloorDiv, Modulo, symbol
from t2n_core.nnef.sizes.ranges import EmptyRangeError, SizeRange, relation_holds

T, S, P = symbol("T"), symbol("S"), symbol("P")
EVEN = Eq(Modulo(T, 2), 0)
ANY = SizeRange.of(["T", "S"])


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        (SizeRange.of(["T"]), "T >= 1"),
        (SizeRange({"T": (0, None)}), "T >= 0"),
        (SizeRange({"T": (1, 16)}, (EVEN,)), "1 <= T <= 16, T % 2 == 0"),
        (SizeRange({"T": (6, 6)}), "T == 6"),
        (SizeRange({"T": (1, None), "S": (2, 9)}, (Le(T, S),)), "2 <= S <= 9, T >= 1, T <= S"),
        (ANY.narrowed(Le(T + S, 20)), "S >= 1, T >= 1, S + T <= 20"),
        (ANY.narrowed(Lt(FloorDiv(T + 1, 3), S)), "S >= 1, T >= 1, (T + 1) // 3 < S"),
        (ANY.narrowed(Eq(Modulo(T + S, 4), 1)), "S >= 1, T >= 1, (S + T) % 4 == 1"),
        (ANY.narrowed(Ne(Modulo(T, 4), 1)), "S >= 1, T >= 1, T % 4 != 1"),
        (ANY.narrowed(Ne(Modulo(T, 4), 0)), "S >= 1, T >= 1, T % 4 >= 1"),
        (ANY.narrowed(Ne(Modulo(T, 4), 3)), "S >= 1, T >= 1, T % 4 <= 2"),
        (ANY.narrowed(Ne(Modulo(T, 2), 0)), "S >= 1, T >= 1, T % 2 == 1"),
        (ANY.narrowed(Ne(Modulo(T, 2), 1)), "S >= 1, T >= 1, T % 2 == 0"),
        (ANY.narrowed(Ne(Modulo(2 * T, 5), 0)), "S >= 1, T >= 1, T % 5 >= 1"),
        (ANY.narrowed(Ne(Modulo(2 * T, 5), 3)), "S >= 1, T >= 1, T % 5 <= 3"),
        (ANY.narrowed(Eq(Modulo(6 * T + 1, 4), 3)), "S >= 1, T >= 1, T % 2 == 1"),
        (ANY.narrowed(Eq(Modulo(6 * T, 4), 3)), "S >= 1, T >= 1, (6*T) % 4 == 3"),
        (SizeRange(), ""),
    ],
)
def test_text(sizes: SizeRange, text: str) -> None:
    assert str(sizes) == text


def test_holds() -> None:
    range_ = SizeRange({"T": (2, 16), "S": (0, None)}, (EVEN, Le(S, T)))
    assert range_.holds({"T": 2, "S": 0})
    assert range_.holds({"T": 16, "S": 16})
    assert range_.broken({"T": 17, "S": 18}) == ["T <= 16", "T % 2 == 0", "S <= T"]
    assert range_.broken({"T": 0, "S": 0}) == ["T >= 2"]


@pytest.mark.parametrize(
    ("condition", "bounds"),
    [
        (Le(T, 16), (1, 16)),
        (Lt(T, 16), (1, 15)),
        (Gt(T, 4), (5, None)),
        (Gt(16, T), (1, 15)),
        (Le(2 * T + 1, 16), (1, 7)),
        (Ge(2 * T, 7), (4, None)),
        (Lt(2 * T, 7), (1, 3)),
        (Ge(16 - T, 2), (1, 14)),
        (Eq(3 * T, 12), (4, 4)),
        (true, (1, None)),
    ],
)
def test_a_bound_as_condition(condition: object, bounds: tuple[int, int | None]) -> None:
    narrowed = ANY.narrowed(condition)
    assert narrowed.bounds["T"] == bounds
    assert not narrowed.conditions


def test_narrowed_keeps_what_was_known() -> None:
    narrowed = SizeRange({"T": (3, 20)}).narrowed(EVEN, Le(T, 30), EVEN, T=(0, 18))
    assert narrowed == SizeRange({"T": (3, 18)}, (EVEN,))


@pytest.mark.parametrize("condition", [Lt(T, 3), Eq(2 * T, 9), Le(T + 1, 2)])
def test_nothing_left(condition: object) -> None:
    with pytest.raises(EmptyRangeError):
        SizeRange({"T": (3, 20)}).narrowed(condition)


def test_a_condition_on_other_symbols() -> None:
    with pytest.raises(ValueError, match="T <= P names P, which is not a dynamic axis"):
        ANY.narrowed(Le(T, P))
    with pytest.raises(ValueError, match="names P"):
        ANY.narrowed(Le(P, 8))


def test_unbounded_and_restricted() -> None:
    assert SizeRange({"T": (0, None)}).unbounded
    assert not ANY.unbounded
    assert not ANY.restricted
    assert not SizeRange({"T": (0, None)}).restricted
    assert SizeRange({"T": (2, None)}).restricted
    assert ANY.narrowed(EVEN).restricted


@pytest.mark.parametrize(
    ("sizes", "base", "outside"),
    [
        (SizeRange({"T": (5, 16)}), {"T": 10}, [{"T": 4}, {"T": 17}]),
        (SizeRange({"T": (0, 16)}), {"T": 10}, [{"T": 17}]),
        (SizeRange({"T": (0, None)}), {"T": 10}, []),
        (SizeRange({"T": (2, 16)}, (EVEN,)), {"T": 10}, [{"T": 0}, {"T": 18}, {"T": 9}]),
        (ANY.narrowed(Le(T, S)), {"T": 3, "S": 7}, [{"T": 0, "S": 7}, {"T": 3, "S": 2}]),
        (ANY.narrowed(Le(T + S, 20)), {"T": 3, "S": 7}, [{"T": 0, "S": 7}, {"T": 3, "S": 0}, {"T": 3, "S": 18}]),
        (ANY.narrowed(Eq(T, S)), {"T": 3, "S": 3}, [{"T": 3, "S": 2}]),
        (SizeRange({"T": (1, 4096)}), {"T": 10}, [{"T": 0}, {"T": 4097}]),
    ],
)
def test_just_outside(sizes: SizeRange, base: dict[str, int], outside: list[dict[str, int]]) -> None:
    points = sizes.just_outside(base)
    assert points == outside
    assert all(len(sizes.broken(point)) == 1 for point in points)


def test_just_outside_breaks_one_condition_where_that_can_be() -> None:
    """S >= 1 cannot be broken alone: T <= S would be too."""
    sizes = ANY.narrowed(Le(T, S))
    assert not any(point["S"] == 0 for point in sizes.just_outside({"T": 1, "S": 1}))


@pytest.mark.parametrize("kind", [Eq, Ne])
@pytest.mark.parametrize(
    ("factor", "plus", "divisor"), [(1, 0, 2), (2, 0, 5), (6, 1, 4), (9, 4, 6), (7, 3, 3), (5, 2, 8)]
)
def test_a_shorter_form_of_a_remainder_holds_at_the_same_sizes(kind: Any, factor: int, plus: int, divisor: int) -> None:
    for other in range(divisor):
        condition = kind(Modulo(factor * T + plus, divisor), other, evaluate=False)
        try:
            sizes = SizeRange.of(["T"]).narrowed(condition)
        except EmptyRangeError:
            continue
        for size in range(1, 60):
            assert sizes.holds({"T": size}) == (((factor * size + plus) % divisor == other) == (kind is Eq)), (
                other,
                size,
            )


class BitwiseAnd(sympy.Function):
    """A function of integers that `dims` does not know, as those of PyTorch are."""

    @classmethod
    def eval(cls, a: sympy.Expr, b: sympy.Expr) -> sympy.Expr | None:
        return sympy.Integer(int(a) & int(b)) if a.is_Integer and b.is_Integer else None


def test_conditions_with_functions_of_others() -> None:
    condition = sympy.Eq(BitwiseAnd(T, T - 1) + FloorDiv(T, 100), 0, evaluate=False)
    assert [n for n in range(1, 200) if relation_holds(condition, {"T": n})] == [1, 2, 4, 8, 16, 32, 64]
    over = sympy.Gt(FloorDiv(12, BitwiseAnd(T, 3)), 4, evaluate=False)
    assert [relation_holds(over, {"T": n}) for n in (1, 2, 3, 4)] == [True, True, False, False]
