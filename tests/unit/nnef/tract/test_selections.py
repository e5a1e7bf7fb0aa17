"""Slices of one element become gathers where several of them alone read a computed value."""

from __future__ import annotations

import pytest

from t2n_core.nnef.graph import FLOAT32, Value
from t2n_core.nnef.sizes.dims import symbol
from t2n_core.nnef.spec import spec_for
from t2n_core.nnef.tract.emitter import TractEmitter
from tests.releases import NEWEST


def selected(g: TractEmitter, value: Value, places: range) -> list[Value]:
    return [g.squeeze(g.take(value, 1, index, index + 1), axes=[1]) for index in places]


def operators(
    version: str, count: int, *, computed: bool = True, output: bool = False, other: bool = False
) -> set[str]:
    g = TractEmitter(spec_for("tract", version))
    x = g.external("x", (symbol("B"), 6, 4), FLOAT32)
    value = g.exp(x) if computed else x
    elements = selected(g, value, range(count))
    g.graph.outputs += [*elements, *([value] if output else []), *([g.take(value, 1, 0, 2)] if other else [])]
    g.rewrite_graph()
    for index, element in enumerate(elements):
        assert element.shape == (symbol("B"), 4)
        assert element.producer is not None
        if element.producer.name == "tract_core_gather":
            assert (element.producer.arguments["indices"], element.producer.arguments["axis"]) == (index, 1)
    return {operation.name for operation in g.graph.operations if operation.name not in ("external", "exp")}


def test_several_selections_are_gathered() -> None:
    assert operators(NEWEST, 4) == {"tract_core_gather"}


@pytest.mark.parametrize(
    ("version", "count", "options"),
    [
        ("0.23.8", 4, {}),
        (NEWEST, 3, {}),
        (NEWEST, 4, {"computed": False}),
        (NEWEST, 4, {"output": True}),
        (NEWEST, 4, {"other": True}),
    ],
)
def test_others_are_slices(version: str, count: int, options: dict[str, bool]) -> None:
    """A value that is an input or an output, or that another operation reads, is computed in one piece anyhow."""
    assert operators(version, count, **options) == {"slice", "squeeze"}
