"""Reshapes of dynamic sizes, as their statements have them."""

from __future__ import annotations

import pytest

from t2n_core.nnef.graph import FLOAT32
from t2n_core.nnef.sizes.dims import FloorDiv, Shape, symbol
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.nnef.spec import spec_for
from t2n_core.nnef.tract.emitter import TractEmitter
from t2n_core.nnef.tract.sizes.printer import size_text
from tests.releases import NEWEST

B, H, W = symbol("B"), symbol("H"), symbol("W")
ROWS, COLUMNS = FloorDiv(H + 3, 4), FloorDiv(W + 3, 4)


@pytest.mark.parametrize(
    ("before", "merged", "text"),
    [
        ((B, 2, ROWS * COLUMNS), B * 2 * ROWS * COLUMNS, "((B*(((H+3)/4)*((W+3)/4)))*2)"),
        ((B, 2, ROWS, COLUMNS), B * 2 * ROWS * COLUMNS, "(((B*((H+3)/4))*((W+3)/4))*2)"),
    ],
    ids=["an axis that is a product", "axes alone"],
)
def test_a_merged_axis_is_the_product_of_the_axes_as_they_are(before: Shape, merged: object, text: str) -> None:
    """tract 0.21 and 0.22 compare element counts syntactically."""
    g = TractEmitter(spec_for("tract", "0.21.19"))
    g.graph.sizes = SizeRange(dict.fromkeys("BHW", (1, None)))
    g.external("image", (B, H, W), FLOAT32)
    g.reshape_to(g.external("x", before, FLOAT32), (merged,))  # type: ignore[arg-type]
    (size,) = g.graph.operations[-1].arguments["shape"]
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("before", "after", "operator"),
    [
        ((H,), (1, H, 1), "unsqueeze"),
        ((1, H, 1), (H,), "squeeze"),
        ((1, B, H), (B, 1, H), "reshape"),
        ((B, H), (B * H,), "reshape"),
    ],
)
def test_axes_of_size_1_are_inserted_and_removed_by_operators_of_their_own(
    before: Shape, after: Shape, operator: str
) -> None:
    g = TractEmitter(spec_for("tract", NEWEST))
    g.reshape_to(g.external("x", before, FLOAT32), after)
    assert g.graph.operations[-1].name == operator
