"""The driver of programs: expressions, statements, and the order in which archives run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from t2n_core.program.driver import evaluate, run_program

VALUES = {"x": np.arange(12.0).reshape(3, 4), "n": np.array(2), "flags": np.array([True, False, True])}


def no_call(name: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    raise AssertionError(f"{name} ran")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (["add", "n", 3], 5),
        (["sub", 1, "n"], -1),
        (["floor_div", -7, 2], -4),
        (["mod", -7, 3], 2),
        (["less", "n", 2], False),
        (["less_equal", "n", 2], True),
        (["and", True, ["not", ["equal", "n", 2]]], False),
        (["size", "x", -1], 4),
        (["slice", "x", 1, 1, 3], [[1, 2], [5, 6], [9, 10]]),
        (["slice", "x", 0, -1, 3], [[8, 9, 10, 11]]),
        (["concat", 0, ["range", 2], {"list": [7]}], [0, 1, 7]),
        (["argmax", ["sub", 0, "x"], 1], [0, 0, 0]),
        (["sum", "x", 0], [12, 15, 18, 21]),
        (["gather", "x", {"list": [2, 0]}, 0], [[8, 9, 10, 11], [0, 1, 2, 3]]),
        (["repeat", {"list": [5, 6, 7]}, {"list": [2, 0, 1]}, 0], [5, 5, 7]),
        (["where", "flags", {"list": [1, 2, 3]}, 9], [1, 9, 3]),
        (["replace", {"list": [1, 2, 3]}, "flags", {"list": [8, 9]}], [8, 2, 9]),
        (["reshape", {"list": [4]}, {"list": []}], 4),
        (["full", {"list": [2, 1]}, 3, {"text": "int64"}], [[3], [3]]),
        (["cast", ["round", {"list": [0.5, 1.5, -2.6]}], {"text": "int64"}], [0, 2, -3]),
    ],
)
def test_an_expression(expression: Any, expected: Any) -> None:
    result = np.asarray(evaluate(expression, dict(VALUES)))
    assert result.tolist() == np.asarray(expected).tolist()


def test_data_types_are_kept() -> None:
    half = {"x": np.ones((2, 2), np.float16)}
    assert np.asarray(evaluate(["sum", "x", 0], dict(half))).dtype == np.float16
    assert np.asarray(evaluate(["add", "x", 1], dict(half))).dtype == np.float16
    assert np.asarray(evaluate(["argmax", "x", 0], dict(half))).dtype == np.int64


def test_rows_and_places_must_be_as_many() -> None:
    with pytest.raises(ValueError, match="1 rows for 2 places"):
        evaluate(["replace", {"list": [1, 2, 3]}, "flags", {"list": [8]}], dict(VALUES))


def test_loops_branches_and_archives_run_in_order() -> None:
    program = {
        "inputs": ["x"],
        "outputs": ["found"],
        "statements": [
            {"let": {"t": 0, "found": ["full", {"list": [0]}, 0, {"text": "int64"}]}},
            {
                "while": ["less", "t", ["size", "x", 0]],
                "do": [
                    {"run": "square", "inputs": {"a": ["gather", "x", "t", 0]}, "outputs": {"b": "y"}},
                    {
                        "if": ["less", "y", 10],
                        "then": [{"let": {"found": ["concat", 0, "found", ["reshape", "y", {"list": [1]}]]}}],
                    },
                    {"let": {"t": ["add", "t", 1]}},
                ],
            },
        ],
    }
    seen = []

    def call(name: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        seen.append((name, int(inputs["a"])))
        return {"b": inputs["a"] ** 2}

    assert run_program(program, {"x": np.array([2, 5, 3])}, call)["found"].tolist() == [4, 9]
    assert seen == [("square", 2), ("square", 5), ("square", 3)]


def test_an_endless_loop_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("t2n_core.program.driver.MOST_TURNS", 5)
    program = {"inputs": [], "outputs": [], "statements": [{"while": True, "do": []}]}
    with pytest.raises(RuntimeError, match="did not end after 5 turns"):
        run_program(program, {}, no_call)


def test_a_missing_input_is_an_error() -> None:
    with pytest.raises(ValueError, match="the program needs features"):
        run_program({"inputs": ["features"], "outputs": [], "statements": []}, {}, no_call)
