"""Counts that PyTorch computes in floating point are PyTorch's own at every size, or refused."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
import torch
import torch.nn.functional as F

from t2n_core.errors import CaptureError
from t2n_core.nnef.sizes.dims import evaluate
from t2n_core.torch_graph.capture.tracer import CapturedModel, TorchModuleTracer
from t2n_core.torch_graph.constraints.rounded_sizes import first_difference, fraction_of
from t2n_core.torch_graph.frontend.inputs import bind_inputs
from t2n_core.torch_graph.frontend.sources import source_of
from tests.nets import OfFunction


def captured(function: Callable[[torch.Tensor], torch.Tensor]) -> CapturedModel:
    model = OfFunction(function)
    inputs = bind_inputs(source_of(model), {"x": torch.randn(2, 3, 7)})
    return TorchModuleTracer(model, args=inputs, dynamic_axes={"x": {2: "T"}}).trace()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.arange(x.shape[2] - 1, -1, -1.0) + x[0, 0, 0],
        lambda x: torch.arange(0, x.shape[2], 0.5) + x[0, 0, 0],
        lambda x: torch.arange(-0.25, 3 * x.shape[2], 2.75) + x[0, 0, 0],
        lambda x: torch.arange(2 * x.shape[2] + 1, 0.5, -1.5) + x[0, 0, 0],
        lambda x: torch.arange(0.0, x.shape[2], 1.5, dtype=torch.int64) + x[0, 0, 0],
        lambda x: torch.arange(0.5, x.shape[2], 1.5, dtype=torch.int32) + x[0, 0, 0],
        lambda x: torch.arange(0, 3 * x.shape[2], x.shape[2]) + x[0, 0, 0],
        lambda x: torch.arange(0, 3 * x.shape[2] + 1, 2 * x.shape[2]) + x[0, 0, 0],
    ],
)
def test_counts_of_arange(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    model = captured(function)
    assert str(model.range) == "T >= 1"
    for size in range(1, 60):
        (count,) = (evaluate(extent, {"T": size}) for extent in model.graph.outputs[0].shape)
        assert count == len(function(torch.zeros(2, 3, size))), size


@pytest.mark.parametrize("step", [0.7, 2.0**-20])
def test_steps_that_float64_rounds_are_refused(step: float) -> None:
    with pytest.raises(CaptureError, match="floating point"):
        captured(lambda x: torch.arange(0, x.shape[2], step) + x[0, 0, 0])


@pytest.mark.parametrize("factor", [0.6, 1.1, 1.5, 1.7, 2.2, 2.25])
@pytest.mark.parametrize("recomputed", [True, False])
def test_sizes_of_resized_tensors(factor: float, recomputed: bool) -> None:
    model = captured(lambda x: F.interpolate(x, scale_factor=factor, recompute_scale_factor=recomputed))
    assert str(model.range) == "T >= 1"
    for size in range(2, 200):
        expected = F.interpolate(torch.zeros(1, 1, size), scale_factor=factor).shape[2]
        assert evaluate(model.graph.outputs[0].shape[2], {"T": size}) == expected, size


@pytest.mark.parametrize("factor", [0.7, 1.4, 2.3, 3.14159265, 1 / 1009])
def test_factors_that_are_no_quotient_are_refused(factor: float) -> None:
    with pytest.raises(CaptureError, match=f"floating point: .*the factor {factor}"):
        captured(lambda x: F.interpolate(torch.cat([x] * 1000, 2), scale_factor=factor))


def test_where_float64_and_fractions_part() -> None:
    assert fraction_of(1.7) == Fraction(17, 10)
    assert fraction_of(3.14159265) is None
    assert first_difference("FloorToInt", (("*", 1.7),), 17, 0, 10) is None
    assert first_difference("FloorToInt", (("*", 1.4),), 7, 0, 5) == 45
    assert int(45 * 1.4) == 62
