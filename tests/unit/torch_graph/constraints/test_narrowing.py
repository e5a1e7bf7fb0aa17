"""The range that decisions leave of all sizes."""

from __future__ import annotations

import sympy

from t2n_core.errors import Origin
from t2n_core.nnef.sizes.dims import FloorDiv, symbol
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.torch_graph.constraints.narrowing import SizeDecision, narrow_range

B, T = symbol("B"), symbol("T")
HERE = Origin("a line of the model")


def test_decisions_that_need_no_proof_come_before_those_on_several_sizes() -> None:
    """The first one turns at T // 5 == 2 alone, which the second one leaves out, whatever their order is."""
    decisions = [
        SizeDecision(sympy.Ne(B * (FloorDiv(T, 5) - 1), 1, evaluate=False), HERE),
        SizeDecision(sympy.Ge(T, 60, evaluate=False), HERE, required=True),
    ]
    regions = []
    sizes, causes, dropped = narrow_range(
        SizeRange.of(["B", "T"]), decisions, {"B": 2, "T": 97}, lambda region, _: bool(regions.append(region))
    )
    assert str(sizes) == "B >= 1, T >= 60"
    assert causes == decisions[1:]
    assert not dropped
    assert not regions
