"""Sizes of symbols from the shapes of inputs."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from t2n_core.dialect.graphs.symbols import asserted_numbers, check_assertions
from t2n_core.errors import InputError
from t2n_core.nnef.reading.parser import read_text
from tests.unit.dialect.graphs import outputs_of

HEAD = "extension tract_symbol T;\nextension tract_symbol S;\nextension tract_assert T >= 2;\n"


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def test_a_symbol_is_the_extent_of_an_axis_and_a_size_in_the_graph() -> None:
    y = outputs_of(
        "x = external<scalar>(shape = [T, 3]);\ny = tile(slice(x, axes = [0], begin = [T - 1], end = [T]), "
        "repeats = [(2*T)/3+1, 1]);",
        {"x": np.arange(15, dtype=np.float32).reshape(5, 3)},
        head=HEAD,
    )["y"]
    np.testing.assert_array_equal(y.array, [[12, 13, 14]] * 4)


def test_expressions_are_solved_for_their_symbol() -> None:
    y = outputs_of(
        "x = external<scalar>(shape = [2*T+S]);\nz = external<scalar>(shape = [1, S]);\n"
        "y = reshape(x, shape = [1, T + T + S]);",
        {"x": zeros(9), "z": zeros(1, 3)},
        head=HEAD,
    )["y"]
    assert y.shape == (1, 9)


@pytest.mark.parametrize(
    ("x", "z", "message"),
    [
        (zeros(5, 4), zeros(5), "axis 1 of the input `x` has 4 elements, and not 3"),
        (zeros(5, 3), zeros(4), "axis 0 of the input `z` has 4 elements, and not 5"),
        (zeros(5), zeros(5), "the input `x` has 1 axes, and the graph declares 2"),
        (zeros(1, 3), zeros(1), "the graph asserts `T >= 2`, and T = 1"),
        (np.zeros((5, 3), np.int64), zeros(5), "the input `x` is int64, and the graph declares float32"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(x: Any, z: Any, message: str) -> None:
    body = "x = external<scalar>(shape = [T, 3]);\nz = external<scalar>(shape = [T]);\ny = neg(x);"
    with pytest.raises(InputError, match=re.escape(message)):
        outputs_of(body, {"x": x, "z": z}, head=HEAD)


def test_a_symbol_that_nothing_determines_is_refused() -> None:
    with pytest.raises(InputError, match="no input determines the size `S`"):
        outputs_of("x = external<scalar>(shape = [T + S]);\ny = neg(x);", {"x": zeros(5)}, head=HEAD)


def test_an_end_that_is_computed_to_be_zero_is_not_the_end_of_the_axis() -> None:
    body = "x = external<scalar>(shape = [T]);\ny = slice(x, axes = [0], begin = [0], end = [T - 4]);"
    assert outputs_of(body, {"x": zeros(4)}, head=HEAD)["y"].shape == (0,)
    assert outputs_of(body, {"x": zeros(7)}, head=HEAD)["y"].shape == (3,)


def test_the_larger_and_the_smaller_of_two_sizes() -> None:
    body = (
        "x = external<scalar>(shape = [T]);\n"
        "y = slice(x, axes = [0], begin = [(max((T-4),1)+1)], end = [min(T,(max(T,3)-(T/5)))]);"
    )
    assert outputs_of(body, {"x": np.arange(9, dtype=np.float32)}, head=HEAD)["y"].array.tolist() == [6, 7]


SCENARIOS = (
    "extension tract_symbol T;\nextension tract_assert few: T >= 3;\nextension tract_assert few: T <= 6;\n"
    "extension tract_assert blocks: T >= 8;\nextension tract_assert blocks: T/4*4 == T;\n"
)


@pytest.mark.parametrize(("size", "is_allowed"), [(2, False), (3, True), (6, True), (8, True), (9, False), (12, True)])
def test_all_assertions_of_one_scenario_must_hold(size: int, is_allowed: bool) -> None:
    symbols = {"T": size}
    extensions = read_text(f"version 1.0;\n{SCENARIOS}\ngraph g(x) -> (x) {{\n}}").extensions
    if is_allowed:
        check_assertions(extensions, symbols)
        return
    message = f"the graph has the scenarios `T >= 3 and T <= 6`, `T >= 8 and T/4*4 == T`, and T = {size}"
    with pytest.raises(InputError, match=re.escape(message)):
        check_assertions(extensions, symbols)


def test_numbers_of_assertions() -> None:
    extensions = read_text(f"version 1.0;\n{HEAD}{SCENARIOS}\ngraph g(x) -> (x) {{\n}}").extensions
    assert asserted_numbers(extensions) == {2, 3, 4, 6, 8}
