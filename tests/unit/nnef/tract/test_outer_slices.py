"""Slices that leave out the first part of a value are kept apart in the releases that die of them."""

from __future__ import annotations

import numpy as np
import pytest

from t2n_core.nnef.dat import ArrayWeight
from t2n_core.nnef.graph import BOOL, FLOAT32
from t2n_core.nnef.spec import spec_for
from t2n_core.nnef.tract.emitter import TractEmitter

AFFECTED = "0.22.4"


def emitter(release: str = AFFECTED) -> TractEmitter:
    return TractEmitter(spec_for("tract", release))


def apart(g: TractEmitter) -> list[str]:
    """The operators that keep slices apart."""
    g.rewrite_graph()
    return [operation.name for operation in g.graph.operations if operation.outputs[0].name.endswith("_apart")]


@pytest.mark.parametrize(
    ("release", "bounds", "kept"),
    [
        (AFFECTED, ((2, 4), (5, 8)), ["pad"]),
        (AFFECTED, ((0, 4), (5, 8)), []),
        (AFFECTED, ((2, 4),), []),
        (AFFECTED, ((0, 1), (1, 2), (2, 3), (3, 4)), ["pad"]),
        ("0.21.10", ((2, 4), (5, 8)), []),
        ("0.23.0", ((2, 4), (5, 8)), []),
    ],
)
def test_slices_of_one_value(release: str, bounds: tuple[tuple[int, int], ...], kept: list[str]) -> None:
    g = emitter(release)
    y = g.tanh(g.external("x", (3, 9), FLOAT32))
    g.graph.outputs = [g.slice(y, axes=[1], begin=[begin], end=[end]) for begin, end in bounds]
    assert apart(g) == kept


@pytest.mark.parametrize(
    ("release", "axis", "kept"),
    [
        ("0.21.11", 2, ["pad"]),
        ("0.21.13", 2, ["pad"]),
        ("0.22.1", 2, ["pad"]),
        ("0.21.13", 1, []),
        ("0.21.10", 2, []),
        ("0.21.14", 2, []),
        ("0.22.3", 2, []),
    ],
)
def test_a_slice_that_moves_to_another_one_of_its_axis(release: str, axis: int, kept: list[str]) -> None:
    g = emitter(release)
    first = g.slice(g.tanh(g.external("x", (3, 9), FLOAT32)), axes=[1], begin=[0], end=[6])
    later = g.exp(g.unsqueeze(first, axes=[0]))
    g.graph.outputs = [g.slice(later, axes=[axis], begin=[0], end=[2])]
    assert apart(g) == kept


@pytest.mark.parametrize(("release", "kept"), [("0.19.2", ["pad"]), ("0.19.3", [])])
def test_a_slice_that_moves_to_a_number(release: str, kept: list[str]) -> None:
    g = emitter(release)
    y = g.exp(g.add(g.external("x", (3, 9), FLOAT32), 1.5))
    g.graph.outputs = [g.slice(y, axes=[1], begin=[0], end=[2])]
    assert apart(g) == kept


@pytest.mark.parametrize(("release", "axis", "kept"), [("0.19.2", 1, ["pad"]), ("0.19.2", 0, []), ("0.19.3", 1, [])])
def test_a_slice_that_moves_to_an_operand_of_one_element(release: str, axis: int, kept: list[str]) -> None:
    g = emitter(release)
    x = g.external("x", (3, 9), FLOAT32)
    y = g.exp(g.mul(x, g.exp(g.external("scale", (3, 1), FLOAT32))))
    g.graph.outputs = [g.slice(y, axes=[axis], begin=[0], end=[2])]
    assert apart(g) == kept


@pytest.mark.parametrize(("begin", "kept"), [(1, ["pad"]), (0, [])])
def test_a_slice_of_a_slice_becomes_one_of_the_value(begin: int, kept: list[str]) -> None:
    g = emitter()
    outer = g.slice(g.tanh(g.external("x", (3, 9), FLOAT32)), axes=[1], begin=[begin], end=[6])
    g.graph.outputs = [g.exp(outer), g.exp(g.slice(outer, axes=[1], begin=[0], end=[2]))]
    assert apart(g) == kept
    assert all(
        operation.arguments["input"] is outer
        for operation in g.graph.operations
        if operation.outputs[0].name.endswith("_apart")
    )


def test_slices_that_move_before_other_operations() -> None:
    g = emitter()
    x = g.external("x", (3, 9), FLOAT32)
    turned = g.transpose(g.tanh(x), axes=[1, 0])
    later = g.unsqueeze(g.exp(x), axes=[0])
    g.graph.outputs = [g.slice(turned, axes=[0], begin=[2], end=[4]), g.slice(later, axes=[2], begin=[5], end=[8])]
    assert apart(g) == ["pad"]


@pytest.mark.parametrize(("begin", "kept"), [(0, []), (1, ["pad"])])
def test_slices_along_several_readers_are_the_same_parts(begin: int, kept: list[str]) -> None:
    """Two rows of a normalized value, whose mean and difference read it too."""
    g = emitter()
    y = g.tanh(g.external("x", (3, 9), FLOAT32))
    normed = g.mul(g.sub(y, 1.5), g.exp(y))
    g.graph.outputs = [g.slice(normed, axes=[0], begin=[row], end=[row + 1]) for row in (begin, begin + 1)]
    assert apart(g) == kept


def test_one_slice_along_two_readers_is_split() -> None:
    g = emitter()
    y = g.tanh(g.external("x", (3, 9), FLOAT32))
    g.graph.outputs = [g.slice(g.mul(g.exp(y), g.sin(y)), axes=[0], begin=[1], end=[2])]
    assert apart(g) == ["pad"]


def test_a_reader_of_the_whole_keeps_them_apart() -> None:
    g = emitter()
    y = g.tanh(g.external("x", (3, 9), FLOAT32))
    g.graph.outputs = [g.slice(y, axes=[1], begin=[b], end=[b + 2]) for b in (2, 5)] + [g.softmax(y, axes=[1])]
    assert apart(g) == []


def test_a_slice_that_is_multiplied_by_zeros_keeps_none_apart() -> None:
    g = emitter()
    y = g.tanh(g.external("x", (3, 9), FLOAT32))
    steps = [g.slice(y, axes=[1], begin=[n], end=[n + 1]) for n in range(4)]
    nothing = g.constant(np.zeros((3, 1), np.float32))
    g.graph.outputs = [g.mul(nothing, g.transpose(steps[0], axes=[0, 1])), *map(g.exp, steps[1:])]
    assert apart(g) == ["pad"]
    pad_output = next(operation for operation in g.graph.operations if operation.name == "pad").outputs[0]
    (reader,) = [operation for operation in g.graph.operations if pad_output in operation.inputs()]
    assert reader.arguments["begin"] == [1], "the engine drops the slice from 0"


def test_slices_of_one_axis_move_before_those_of_another() -> None:
    g = emitter()
    y = g.tanh(g.external("x", (4, 9), FLOAT32))
    halves = [g.slice(y, axes=[0], begin=[begin], end=[begin + 2]) for begin in (0, 2)]
    g.graph.outputs = [g.slice(half, axes=[1], begin=[2], end=[7]) for half in halves]
    assert apart(g) == ["pad"]


def test_booleans_are_never_split() -> None:
    g = emitter()
    y = g.not_(g.external("x", (3, 9), BOOL))
    g.graph.outputs = [g.slice(y, axes=[1], begin=[b], end=[b + 2]) for b in (0, 5)]
    assert apart(g) == ["tract_core_trilu"]
    names = [value.name for operation in g.graph.operations for value in operation.outputs]
    assert names.index(next(n for n in names if n.startswith("constant_"))) < names.index(
        next(n for n in names if n.endswith("_apart"))
    ), "the diagonal stands before it"


@pytest.mark.parametrize(
    ("release", "bounds", "stored"),
    [
        (AFFECTED, ((2, 4), (5, 8)), True),
        (AFFECTED, ((0, 4), (5, 8)), False),
        (AFFECTED, ((2, 4),), False),
        (AFFECTED, ((0, 1), (1, 2), (2, 3), (3, 4)), False),
        ("0.21.10", ((2, 4), (5, 8)), False),
        ("0.23.0", ((2, 4), (5, 8)), False),
    ],
)
def test_slices_of_a_weight(release: str, bounds: tuple[tuple[int, int], ...], stored: bool) -> None:
    g = emitter(release)
    array = np.arange(27, dtype=np.float32).reshape(3, 9)
    weight = g.variable("weight", ArrayWeight(array))
    slices = [g.slice(weight, axes=[1], begin=[begin], end=[end]) for begin, end in bounds]
    for value, (begin, end) in zip(slices, bounds, strict=True):
        value.weight = ArrayWeight(array[:, begin:end])
    g.graph.outputs = [g.tanh(value) for value in slices]
    assert apart(g) == []
    names = [operation.name for operation in g.graph.operations]
    assert names.count("slice") == (0 if stored else len(bounds))
    shapes = {operation.arguments["label"]: value.shape for operation, value in g.graph.variables()}
    assert list(shapes.values()) == [(3, 9), *([(3, 2), (3, 3)] if stored else ())]
