"""How ranges are written for the engine, and how a user's assertions become a part of them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from packaging.version import Version
from sympy import Eq, Ge, Gt, Le, Lt
from sympy.core.relational import Relational
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.errors import InputError, LowerError
from t2n_core.nnef.sizes.dims import FloorDiv, Max, Min, Modulo, evaluate, symbol
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.nnef.tract.sizes.guards import assertion, assertions, condition, excesses, without_quotients
from t2n_core.nnef.tract.traits import TractTraits, traits_of
from t2n_core.nnef.tract.user_extensions import to_write, with_assertions
from tests.releases import NEWEST

T, S = symbol("T", 0), symbol("S", 0)
FREE = SizeRange({"T": (0, None), "S": (0, None)})
OLD, NEW = traits_of(Version("0.21.7")), traits_of(Version("0.21.8"))


@pytest.mark.parametrize(
    ("relation", "text"),
    [
        (Le(T, 16), "T <= 16"),
        (Lt(T, S), "(T+1) <= S"),
        (Gt(T, S), "(T-1) >= S"),
        (Le(T + S, 20), "(S+T) <= 20"),
        (Eq(Modulo(T, 2), 0), "((T+1)/2) <= (T/2)"),
        (Eq(T, 4 * FloorDiv(T, 4), evaluate=False), "((T+3)/4) <= (T/4)"),
        (Eq(Modulo(T, 4), 3), "(T-((T/4)*4)) == 3"),
        (Eq(Modulo(2 * T + S, 4), 0), "((((T*2)+S)+3)/4) <= (((T*2)+S)/4)"),
        (Eq(T, S), "T == S"),
    ],
)
def test_conditions_as_the_engine_reads_them(relation: object, text: str) -> None:
    condition_text = assertion(relation)
    assert condition_text == text or condition_text == " == ".join(reversed(text.split(" == ")))


@pytest.mark.parametrize("dividend", [T - 1, -T, T - S])
def test_a_dividend_that_may_be_negative_is_not_compared_by_quotients(dividend: Any) -> None:
    """The engine rounds -1 / 4 to 0, as it does 2 / 4."""
    assert assertion(Eq(Modulo(dividend, 4), 0, evaluate=False)).endswith(" == 0")


def test_scenarios_stand_twice_and_hold_all_conditions() -> None:
    sizes = SizeRange({"T": (5, 16), "P": (0, None)}).narrowed()
    assert assertions(sizes, NEW) == [
        "tract_assert P >= 0",
        "tract_assert T >= 1",
        *(f"tract_assert {name}: {bound}" for name in ("range", "range_again") for bound in ("T >= 5", "T <= 16")),
    ]
    assert assertions(sizes, OLD) == ["tract_assert P >= 0", "tract_assert T >= 1"]
    assert assertions(sizes, traits_of(Version("0.21.5"))) == []
    assert assertions(FREE, NEW) == ["tract_assert S >= 0", "tract_assert T >= 0"]


@pytest.mark.parametrize(
    "relation",
    [
        Le(T, 16), Ge(T, 5), Lt(T, S), Le(T, S), Gt(T, S), Ge(T, S), Le(2 * T, S + 1), Ge(3 * T, 2 * S + 5),
        Le(T + S, 20), Eq(Modulo(T, 3), 1), Eq(T, S), Eq(T, S + 3), Le(T * S, 30), Le(T * S, 1 << 24),
        Le(FloorDiv(T + 2, 4) * 4, S + 2), Le(Max(T, S), 9), Le(T + Max(T, S), 20),
        Ge(Min(T, S), 3), Gt(2 * Min(T, S), T), Le(Min(T, S), 4),
    ],
)  # fmt: skip
@pytest.mark.parametrize("traits", [OLD, NEW])
def test_excess_is_0_inside_and_at_least_1_outside(relation: object, traits: TractTraits) -> None:
    sizes = FREE.narrowed(relation)
    expressions = excesses(sizes, traits)
    for t, s in itertools.product((0, 1, 2, 3, 5, 9, 10, 16, 17, 40, 5000), repeat=2):
        each = [evaluate(expression, {"T": t, "S": s}) for expression in expressions]
        value = max(each) if traits is NEW else sum(each)
        assert value == 0 if sizes.holds({"T": t, "S": s}) else value >= 1, (t, s)


def test_a_bound_is_one_operation() -> None:
    assert list(map(str, excesses(SizeRange({"T": (1, 64)}).narrowed(), NEW))) == ["0", "1 - T", "T - 64"]
    (_, product), (_, many) = (excesses(FREE.narrowed(relation), NEW) for relation in (Le(T * S, 30), Le(T * 1000, S)))
    assert product.has(FloorDiv)
    assert many.has(FloorDiv)


QUOTIENTS = [
    kind(left, right, evaluate=False)
    for kind in (Eq, Ge, Gt, Le, Lt)
    for left, right in (
        (FloorDiv(S + 1, 2) - T, 0),
        (T - FloorDiv(S, 3), 2),
        (FloorDiv(T, 4), 3),
        (2, FloorDiv(T + S, 3) + T),
        (FloorDiv(FloorDiv(T, 2) + 1, 3), S),
    )
]


@pytest.mark.parametrize("relation", QUOTIENTS, ids=str)
def test_quotients_in_sums_are_multiplied_out(relation: Relational) -> None:
    conjuncts = list(without_quotients(relation))
    assert not any(conjunct.atoms(FloorDiv) for conjunct in conjuncts)
    for t, s in itertools.product(range(20), repeat=2):
        sizes = {"T": t, "S": s}
        expected = relation.func(*(evaluate(side, sizes) for side in relation.args))
        assert bool(expected) == all(
            conjunct.func(*(evaluate(side, sizes) for side in conjunct.args)) for conjunct in conjuncts
        ), sizes


def test_what_a_symbol_is_equal_to_stays() -> None:
    relation = Eq(T, FloorDiv(S, 2), evaluate=False)
    assert list(without_quotients(relation)) == [relation]


def test_a_number_too_large_is_no_guard() -> None:
    with pytest.raises(ValueError, match="too large"):
        excesses(FREE.narrowed(Le(T, 1 << 40)), NEW)


class Ratio(nn.Module):
    """Decides by a quotient of two dynamic sizes."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x * 2 if x.shape[0] // y.shape[0] >= 2 else x * 3


@pytest.mark.parametrize("version", ["0.20.22", "0.21.7", NEWEST])
def test_a_range_without_a_form_is_refused(version: str, tmp_path: Path) -> None:
    export = ModelExport(Ratio().eval(), (torch.randn(9), torch.randn(4)), dynamic_axes={"x": {0: "T"}, "y": {0: "S"}})
    with pytest.raises(LowerError, match="cannot check that sizes are in the range"):
        export.to(TractNNEF(version), tmp_path / "model.nnef.tar")


@pytest.mark.parametrize(
    ("words", "relation"),
    [
        ("T <= 16", Le(T, 16)),
        ("T + 2*S < 20", Lt(T + 2 * S, 20)),
        ("T/2*2 == T", Eq(2 * FloorDiv(T, 2), T, evaluate=False)),
        ("T % 2 == 1", Eq(Modulo(T, 2), 1)),
        ("max(T, S) >= 3", Ge(Max(T, S), 3)),
        ("-1 < T - S", Gt(T - S, -1)),
    ],
)
def test_conditions_in_words(words: str, relation: object) -> None:
    parsed_relation = condition(words, {"T": T, "S": S})
    points = [{"T": t, "S": s} for t, s in itertools.product(range(6), repeat=2)]
    assert [FREE.narrowed(parsed_relation).holds(p) for p in points] == [
        FREE.narrowed(relation).holds(p) for p in points
    ]


@pytest.mark.parametrize("words", ["T", "T <= U", "1 <= T <= 3", "T != 3", "T <= 1.5", "T <= f(3)", "T <=", "T in S"])
def test_words_that_are_no_condition(words: str) -> None:
    with pytest.raises(ValueError, match=r"is no|is not one comparison"):
        condition(words, {"T": T, "S": S})


def test_assertions_of_a_user_narrow_the_range() -> None:
    lines = ["tract_registry tract_onnx", "tract_assert T <= 16", "tract_assert T <= S"]
    sizes = with_assertions(SizeRange.of(["T", "S"]), lines)
    assert str(sizes) == "S >= 1, 1 <= T <= 16, T <= S"
    assert to_write(lines, sizes, NEW) == ["tract_registry tract_onnx", "tract_assert T <= 16"]
    assert to_write(lines, sizes, OLD) == ["tract_registry tract_onnx"]
    with pytest.raises(InputError, match="cannot be checked against the sizes"):
        with_assertions(sizes, ["tract_assert T >= 17"])


def test_scenarios_of_a_user_carry_the_range() -> None:
    lines = ["tract_assert tg: S == 1", "tract_assert pp: S >= 2"]
    sizes = with_assertions(SizeRange({"S": (1, None), "P": (0, 8)}), lines)
    assert str(sizes) == "0 <= P <= 8, S >= 1, S == 1 or S >= 2"
    assert sizes.restricted
    assert [line for line in assertions(sizes, NEW) if "tg" in line] == [
        f"tract_assert {name}: {relation}" for name in ("tg", "tg_again") for relation in ("S == 1", "S > 0", "P <= 8")
    ]
    assert to_write(lines, sizes, NEW) == []
    assert to_write(lines, sizes, OLD) == lines  # for the legality check, which names the release that reads them
