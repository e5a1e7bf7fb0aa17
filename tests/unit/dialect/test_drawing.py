"""Inputs that are drawn for a graph: shapes, data types, ranges that it asserts, and graphs that take few integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from t2n_core.dialect import draw_inputs
from t2n_core.dialect.graphs import drawing
from t2n_core.errors import InputError, MalformedArchiveError
from t2n_core.nnef.reading.archive import ArchiveContent
from t2n_core.nnef.reading.parser import read_text

HEAD = "version 1.0;\nextension tract_symbol B;\nextension tract_symbol T;\n"


def content(body: str, inputs: str, head: str = HEAD, **tensors: NDArray[Any]) -> ArchiveContent:
    return ArchiveContent(read_text(f"{head}\ngraph g({inputs}) -> (y) {{\n{body}\n}}"), tensors)


def test_each_symbol_takes_several_sizes_and_each_size_two_sets() -> None:
    graph = content("x = external<scalar>(shape = [B, 4, T]);\ny = relu(x);", "x")
    input_sets = draw_inputs(graph)
    shapes = [inputs["x"].shape for inputs in input_sets]
    assert shapes == [(3, 4, 5)] * 2 + [(5, 4, 2)] * 2 + [(2, 4, 7)] * 2
    assert all(inputs["x"].dtype == np.float32 for inputs in input_sets)
    assert not np.array_equal(input_sets[0]["x"], input_sets[1]["x"])
    assert np.concatenate([inputs["x"].ravel() for inputs in input_sets]).min() < 0
    assert np.array_equal(draw_inputs(graph)[3]["x"], input_sets[3]["x"])
    assert not np.array_equal(draw_inputs(graph, seed=1)[3]["x"], input_sets[3]["x"])


def test_sizes_satisfy_what_the_graph_asserts() -> None:
    head = f"{HEAD}extension tract_assert B <= 2;\nextension tract_assert T >= 8;\n"
    graph = content("x = external<scalar>(shape = [B, T]);\ny = relu(x);", "x", head)
    shapes = [inputs["x"].shape for inputs in draw_inputs(graph)]
    assert len(shapes) == 6
    assert all(batch <= 2 and time >= 8 for batch, time in shapes)


@pytest.mark.parametrize(
    ("condition", "sizes"),
    [("T >= 3", {3, 5, 7}), ("T >= 100", {100, 101, 199}), ("T >= 70 and T <= 72", {70, 71, 72})],
)
def test_sizes_are_of_a_scenario(condition: str, sizes: set[int]) -> None:
    scenario = "".join(f"extension tract_assert range: {clause};\n" for clause in condition.split(" and "))
    head = f"version 1.0;\nextension tract_symbol T;\n{scenario}"
    graph = content("x = external<scalar>(shape = [2, T]);\ny = relu(x);", "x", head)
    assert {inputs["x"].shape[1] for inputs in draw_inputs(graph)} == sizes


def test_expressions_of_symbols_are_shapes() -> None:
    graph = content("x = external<scalar>(shape = [B, 2 * T + 1]);\ny = relu(x);", "x")
    assert {inputs["x"].shape[1] % 2 for inputs in draw_inputs(graph)} == {1}


def test_integers_and_booleans_have_their_types() -> None:
    body = 'n = tract_core_external("I32", [4]);\nf = external<logical>(shape = [4]);\ny = select(f, n, n);'
    input_sets = draw_inputs(content(body, "n, f"))
    assert len(input_sets) == 6, "a graph without symbols takes as many"
    assert {(inputs["n"].dtype.name, inputs["f"].dtype.name) for inputs in input_sets} == {("int32", "bool")}
    assert max(int(inputs["n"].max()) for inputs in input_sets) > 2


def test_indices_are_small_where_the_graph_takes_no_larger_ones() -> None:
    body = (
        "i = external<integer>(shape = [5]);\n"
        "table = variable<scalar>(label = 'table', shape = [2, 3]);\n"
        "y = tract_core_gather(table, i, axis = 0);"
    )
    input_sets = draw_inputs(content(body, "i", table=np.ones((2, 3), np.float32)))
    assert {int(value) for inputs in input_sets for value in inputs["i"]} == {0, 1}


@pytest.mark.parametrize(
    ("operator", "dtype", "least", "most"), [("div", "I64", 1, 10), ("tract_shl", "I8", 0, 1), ("add", "I8", 0, 10)]
)
def test_divisors_are_not_0_and_shifts_less_than_the_width(operator: str, dtype: str, least: int, most: int) -> None:
    body = "".join(f'{name} = tract_core_external("{dtype}", [99]);\n' for name in "ab")
    operands = [inputs["b"] for inputs in draw_inputs(content(f"{body}y = {operator}(a, b);", "a, b"))]
    assert (np.min(operands), np.max(operands)) == (least, most)


def test_a_graph_that_cannot_be_evaluated_is_refused_with_the_reason() -> None:
    body = "x = external<scalar>(shape = [B, 4]);\ny = reshape(x, shape = [-1, 7]);"
    head = f"{HEAD}extension tract_assert B == 1;\n"
    with pytest.raises(InputError, match=r"no inputs could be drawn for the archive: .*reshape"):
        draw_inputs(content(body, "x", head), count=1)


def test_a_malformed_graph_is_not_tried_at_other_sizes() -> None:
    graph = content("x = external<scalar>(shape = [B, T]);\ny = mul(x, size0);", "x")
    with pytest.raises(MalformedArchiveError, match=r"^no statement defines `size0`, in `y = mul"):
        draw_inputs(graph)


def test_fewer_sets_are_drawn_if_one_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock:
        now = 0.0

        def monotonic(self) -> float:
            self.now += 4.0
            return self.now

    monkeypatch.setattr(drawing, "time", Clock())
    graph = content("x = external<scalar>(shape = [B, 4]);\ny = relu(x);", "x")
    assert [len(draw_inputs(graph, timeout=seconds)) for seconds in (9.0, 60.0, 1000.0)] == [1, 4, 6]
