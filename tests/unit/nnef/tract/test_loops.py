"""Loops: what their bodies are given, and when they share one."""

from __future__ import annotations

import numpy as np
import pytest

from t2n_core.nnef.graph import FLOAT32, Value
from t2n_core.nnef.sizes.dims import symbol
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.nnef.spec import spec_for
from t2n_core.nnef.tract.constants import BARRIERS
from t2n_core.nnef.tract.emitter import TractEmitter
from t2n_core.nnef.tract.loops import write_loop
from tests.releases import NEWEST

N = symbol("N")


def emitter(version: str = NEWEST) -> TractEmitter:
    g = TractEmitter(spec_for("tract", version))
    g.declare_symbols(SizeRange.of(["N"]))
    return g


def add_rows(
    b: TractEmitter, rows: list[Value], states: list[Value], given: list[Value]
) -> tuple[list[Value], list[Value]]:
    total = b.add(states[0], rows[0])
    return [total], [b.unsqueeze(b.squeeze(total, axes=[0]), axes=[0])]


def test_a_value_that_is_a_state_and_a_row_gets_two_names() -> None:
    def step(
        b: TractEmitter, rows: list[Value], states: list[Value], given: list[Value]
    ) -> tuple[list[Value], list[Value]]:
        total = b.add(states[0], rows[0])
        return [total], [total, states[0]]

    g = emitter()
    x, start = g.external("x", (N, 3), FLOAT32), g.external("start", (1, 3), FLOAT32)
    write_loop(g, step, [x], [start])
    names = [name for name, *_ in arguments_of(g)["output"]]  # type: ignore[attr-defined]
    assert len(set(names)) == 3
    assert not {"state_0", "scan_0"} & set(names)


@pytest.mark.parametrize(("version", "most"), [("0.22.4", 1), (NEWEST, 0)])
def test_no_reshape_of_rows_moves_into_a_loop(version: str, most: int) -> None:
    g = emitter(version)
    x, start = g.external("x", (N, 3), FLOAT32), g.external("start", (1, 3), FLOAT32)
    (total,), (sums,) = write_loop(g, add_rows, [x], [start])
    g.reshape_to(total, (3, 1))
    barriers = [operation for operation in g.graph.operations if operation.name in BARRIERS]
    assert not barriers, "only rows are reshaped in the loop"
    g.reshape_to(g.add(sums, x), (3 * N,))
    assert sum(operation.name in BARRIERS for operation in g.graph.operations) == most


def arguments_of(g: TractEmitter, number: int = -1) -> dict[str, object]:
    scans = [operation for operation in g.graph.operations if operation.name == "tract_core_scan"]
    return scans[number].arguments


def test_states_keep_their_shape_and_rows_are_counted() -> None:
    g = emitter()
    x, start = g.external("x", (N, 3), FLOAT32), g.external("start", (1, 3), FLOAT32)
    (total,), (sums,) = write_loop(g, add_rows, [x], [start])
    assert (total.shape, sums.shape) == ((1, 3), (N, 3))


def test_inputs_that_give_sizes_are_before_those_that_are_computed_from_them() -> None:
    def step(
        b: TractEmitter, rows: list[Value], states: list[Value], given: list[Value]
    ) -> tuple[list[Value], list[Value]]:
        return [b.add(b.add(states[0], rows[0]), b.slice(given[0], axes=[1], begin=[0], end=[1]))], []

    g = emitter()
    x, start = g.external("x", (5, 2 * N), FLOAT32), g.external("start", (1, 2 * N), FLOAT32)
    write_loop(g, step, [x], [start], [g.external("wide", (1, N), FLOAT32)])
    assert g.graph.fragments["loop_0"].text.startswith(
        "fragment loop_0(full_0: tensor<scalar>, scan_0: tensor<scalar>, state_0: tensor<scalar>)"
    )


def test_equal_bodies_are_one_fragment() -> None:
    g = emitter()
    x, start = g.external("x", (N, 3), FLOAT32), g.external("start", (1, 3), FLOAT32)
    write_loop(g, add_rows, [x], [start])
    write_loop(g, add_rows, [x], [start], backwards=True)
    assert list(g.graph.fragments) == ["loop_0"]
    assert arguments_of(g)["scan"] == [("scan_0", x, 0, -1)]


def test_a_constant_of_the_body_is_given_once_from_outside() -> None:
    def step(
        b: TractEmitter, rows: list[Value], states: list[Value], given: list[Value]
    ) -> tuple[list[Value], list[Value]]:
        weight = np.arange(3, dtype=np.float32)[None]
        return [b.add(b.mul(states[0], b.constant(weight)), b.add(rows[0], b.constant(weight)))], []

    g = emitter()
    x, start = g.external("x", (N, 3), FLOAT32), g.external("start", (1, 3), FLOAT32)
    write_loop(g, step, [x], [start])
    ((name, weight),) = arguments_of(g)["full"]  # type: ignore[misc]
    assert weight.weight is not None
    assert f"{name}: tensor<scalar>" in g.graph.fragments["loop_0"].text
    assert "variable" not in g.graph.fragments["loop_0"].text


def test_a_weight_is_not_scanned_as_it_is() -> None:
    g = emitter()
    start = g.external("start", (1, 3), FLOAT32)
    write_loop(g, add_rows, [g.constant(np.ones((4, 3), np.float32))], [start])
    ((_, scanned, _, _),) = arguments_of(g)["scan"]  # type: ignore[misc]
    assert not g.facts.is_constant(scanned)


def test_a_body_sees_the_sizes_that_extents_are_computed_from() -> None:
    g = emitter()
    g.external("of_n", (N,), FLOAT32)
    x, start = g.external("x", (2 * N, N + 1), FLOAT32), g.external("start", (1, N + 1), FLOAT32)
    write_loop(g, add_rows, [x], [start])
    ((_, sizes),) = arguments_of(g)["full"]  # type: ignore[misc]
    assert sizes.shape == (N,)
