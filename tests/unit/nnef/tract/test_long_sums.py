"""Which sums are written in two steps, and over which axes."""

from __future__ import annotations

import numpy as np
import pytest

from t2n_core.nnef.graph import FLOAT32, FLOAT64
from t2n_core.nnef.sizes.dims import Shape, symbol
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.nnef.spec import spec_for
from t2n_core.nnef.tract.emitter import TractEmitter
from t2n_core.nnef.tract.forms.long_sums import LONGEST
from tests.releases import NEWEST

T, S, FEW = symbol("T"), symbol("S"), symbol("FEW", 1, LONGEST)
Step = tuple[list[int], str]


def sums_over(shape: Shape, axes: list[int], operator: str = "sum_reduce") -> tuple[list[Step], Shape]:
    """Return the axes and the dtype of each sum that is written, and the shape of the result."""
    g = TractEmitter(spec_for("tract", NEWEST))
    g.declare_symbols(SizeRange.of(["T", "S", "FEW"]))
    result = getattr(g, operator)(g.external("x", shape, FLOAT32), axes=axes)
    steps = [o for o in g.graph.operations if o.name in ("sum_reduce", "mean_reduce")]
    return [(list(o.arguments["axes"]), o.outputs[0].dtype.name) for o in steps], result.shape


@pytest.mark.parametrize("operator", ["sum_reduce", "mean_reduce"])
@pytest.mark.parametrize(
    ("shape", "axes", "steps"),
    [
        ((2, 768), [1], [([1], "float32")]),
        ((2, LONGEST), [1], [([1], "float32")]),
        ((2, FEW), [1], [([1], "float32")]),
        ((T, 768), [1], [([1], "float32")]),
        ((2, 12288), [1], [([1], "float32"), ([2], "float64")]),
        ((2, 1_000_003), [1], [([1], "float64")]),
        ((2, 64, 256, 256), [2, 3], [([2], "float32"), ([3], "float64")]),
        ((2, 3, 500_000, 5), [1, 2, 3], [([1, 2, 4], "float32"), ([3], "float64")]),
        ((2, T), [1], [([1], "float64")]),
        ((1, 512, T), [1, 2], [([1, 2], "float64")]),
        ((2, 64, S, T), [2, 3], [([2], "float32"), ([3], "float64")]),
        ((8, T, T), [2], [([2], "float32")]),
    ],
)
def test_steps(operator: str, shape: Shape, axes: list[int], steps: list[Step]) -> None:
    written, result_shape = sums_over(shape, axes, operator)
    assert written == steps
    assert result_shape == tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))


@pytest.mark.parametrize(("version", "dynamic"), [("0.22.4", "mean_reduce"), ("0.23.0", "sum_reduce")])
def test_a_mean_over_a_dynamic_axis_is_a_quotient_where_the_engine_takes_counts_for_masks(
    version: str, dynamic: str
) -> None:
    g = TractEmitter(spec_for("tract", version))
    g.declare_symbols(SizeRange.of(["T"]))
    for shape, operator in (((2, T), dynamic), ((T, 5), "mean_reduce")):
        mean = g.mean_reduce(g.external(f"x{len(g.graph.inputs)}", shape, FLOAT32), axes=[1])
        assert mean.shape == (shape[0], 1)
        assert [o.name for o in g.graph.operations if o.name.endswith("_reduce")][-1] == operator


def test_other_dtypes_stay_as_they_are() -> None:
    g = TractEmitter(spec_for("tract", NEWEST))
    g.declare_symbols(SizeRange.of(["T"]))
    for dtype in (FLOAT64, np.dtype(np.int32)):
        g.sum_reduce(g.external(f"x_{dtype}", (2, T), dtype), axes=[1])
    assert [o.name for o in g.graph.operations if not o.name.endswith("external")] == ["sum_reduce"] * 2


def test_sums_in_loops_stay_as_they_are() -> None:
    g = TractEmitter(spec_for("tract", "0.19.15"))
    g.in_loop = True
    g.sum_reduce(g.external("x", (2, T), FLOAT32), axes=[1])
    assert g.graph.operations[-1].name == "sum_reduce"
