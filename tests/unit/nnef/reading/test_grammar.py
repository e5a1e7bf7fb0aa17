"""The grammar of NNEF, with the values that the evaluator gives its expressions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from t2n_core.dialect.expressions import Scope, evaluate_expression
from t2n_core.dialect.sizes import Size
from t2n_core.errors import InputError
from t2n_core.nnef.reading.grammar import parse_body, parse_expression
from t2n_core.nnef.reading.tree import names_in


def value(text: str, **values: Any) -> Any:
    def no_call(*_: Any) -> Any:
        raise AssertionError("an operator is called")

    with np.errstate(divide="ignore"):
        return evaluate_expression(parse_expression(text), Scope(values, {"T": 7}, no_call))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3 ^ 2", 19),
        ("(1 + 2) * 3 - 4 - 5", 0),
        ("-2 ^ 2", 4),
        ("T / 2 * 2 == 6 && T > 6", True),
        ("0 - T / 2", -3),
        ("(0 - T) / 2", -4),
        ("1 if T < 7 else 2 if T < 8 else 3", 2),
        ("[1, 2, 3][1]", 2),
        ("[1, 2, 3][1:]", [2, 3]),
        ("[1, 2, 3][:2]", [1, 2]),
        ("[for i in range_of(xs), x in xs if x > 1 yield x * i]", [2, 6]),
        ("length_of(xs) + max(T, 2, 9)", 12),
        ("!true || T in xs", False),
        ("('a', [1.5, -2.0])", ("a", [1.5, -2.0])),
        ("1.0 / 0.0", float("inf")),
        ("x1 # a comment\n + 1", 5),
    ],
)
def test_an_expression_has_a_value(text: str, expected: Any) -> None:
    assert value(text, xs=[1, 2, 3], x1=4) == expected


def test_what_is_computed_from_a_symbol_is_a_size() -> None:
    assert isinstance(value("(T + 1) / 2 - 4"), Size)
    assert not isinstance(value("4 / 2"), Size)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1 +", "column 4 of the expression: the text ends too early: a value is expected"),
        ("f(1", "the text ends too early: `,` is expected"),
        ("[1, 2", "the text ends too early"),
        ("a b", "column 3 of the expression: the end is expected, not 'b'"),
        ("1 if 2", "`else` is expected"),
        ("a +\n  $", "line 2, column 3 of the expression: '$' cannot be read as NNEF"),
        ("[for in x yield 1]", "`in` is expected, not 'x'"),
    ],
)
def test_what_is_no_expression_is_refused_with_its_place(text: str, reason: str) -> None:
    with pytest.raises(InputError) as error:
        parse_expression(text)
    assert reason in str(error.value)


def test_what_is_no_body_is_refused_with_its_place_in_the_fragment() -> None:
    with pytest.raises(InputError, match="line 2, column 6 of the fragment: `=` is expected, not ';'"):
        parse_body("fragment f(x: tensor<scalar>) -> (y: tensor<scalar>) {\n    y; }")


def test_names_are_found_in_all_parts() -> None:
    text = "f<scalar>(a, k = [b, (c + d)[e:g]]) if h else [for i in j if m yield -n]"
    assert names_in(parse_expression(text)) == set("abcdeghjmn")


def test_statements_have_their_text() -> None:
    statements = parse_body(
        "fragment f(x: tensor<scalar>) -> (y: tensor<scalar>) {\n a,  b = g(x);\n [y] = [a\n + b]; }"
    )
    assert [(s.results, s.is_list, s.text) for s in statements] == [
        (("a", "b"), False, "a, b = g(x)"),
        (("y",), True, "[y] = [a + b]"),
    ]
