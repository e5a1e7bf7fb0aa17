"""Which operands are expanded once for all operations that broadcast them."""

from __future__ import annotations

import pytest

from t2n_core.nnef.graph import FLOAT32, INT64
from t2n_core.nnef.options.writing_options import WritingOptions
from t2n_core.nnef.sizes.dims import Shape, symbol
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.nnef.spec import spec_for
from t2n_core.nnef.tract.emitter import TractEmitter
from t2n_core.nnef.tract.shared_operands import FEWEST
from tests.releases import NEWEST

S, T, B = symbol("S"), symbol("T"), symbol("B")
HEADS, POSITIONS = (1, 8, S, 64), (1, 1, S, 64)


def emitter(tract: str = NEWEST, options: WritingOptions | None = None) -> TractEmitter:
    g = TractEmitter(spec_for("tract", tract), options=options or WritingOptions())
    g.declare_symbols(SizeRange.of(["S", "T", "B"]))
    return g


def expansions(g: TractEmitter, operand: Shape, shape: Shape, uses: int = FEWEST) -> list[list[int]]:
    """Return the repeats of the tiles that are written for products of `shape` with one operand."""
    factor = g.external("factor", operand, FLOAT32)
    for index in range(uses):
        g.mul(g.external(f"x{index}", shape, FLOAT32), factor)
    g.rewrite_graph()
    return [o.arguments["repeats"] for o in g.graph.operations if o.name == "tile"]


def test_positions_of_all_heads_are_expanded_once() -> None:
    g = emitter()
    assert expansions(g, POSITIONS, HEADS) == [[1, 8, 1, 1]]
    factor, tile = g.graph.inputs[0], g.graph.operations[1].outputs[0]
    products = [o for o in g.graph.operations if o.name == "mul"]
    assert [o.arguments["y"] for o in products] == [tile] * FEWEST
    assert tile.shape == HEADS
    assert factor.shape == POSITIONS


@pytest.mark.parametrize(
    ("operand", "shape"),
    [
        ((1, 1, S, 1), HEADS),  # one element for each row
        ((1, 1, 7, 64), (1, 8, 7, 64)),  # blocks of a known size
        ((1, 1, S, T), (1, 8, S, T)),  # a mask
        (POSITIONS, (B, 8, S, 64)),  # repeated a dynamic number of times
        (HEADS, HEADS),
        ((), ()),
    ],
)
def test_other_operands_stay_as_they_are(operand: Shape, shape: Shape) -> None:
    assert expansions(emitter(), operand, shape) == []


def test_a_few_operations_are_not_worth_it() -> None:
    assert expansions(emitter(), POSITIONS, HEADS, FEWEST - 1) == []


def test_only_where_the_release_gains_by_it() -> None:
    assert expansions(emitter("0.22.4"), POSITIONS, HEADS) == []
    assert expansions(emitter(options=WritingOptions(streaming=True)), POSITIONS, HEADS) == []


def test_integers_stay_as_they_are() -> None:
    g = emitter()
    factor = g.external("factor", POSITIONS, INT64)
    for index in range(FEWEST):
        g.mul(g.external(f"x{index}", HEADS, INT64), factor)
    g.rewrite_graph()
    assert not [o for o in g.graph.operations if o.name == "tile"]
