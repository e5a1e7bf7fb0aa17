"""Results of a model: numbers beside tensors are tensors without axes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from t2n_core.nnef.sizes.dims import symbol
from t2n_core.torch_graph.capture.tracer import CapturedModel, TorchModuleTracer, bind_inputs
from t2n_core.torch_graph.frontend.results import Results, tensors_of
from tests.nets import net_of


def capture(model: Any, axes: Any = None, way: Any = "export") -> CapturedModel:
    inputs = bind_inputs(model, (torch.randn(2, 7, 4),), None) if isinstance(model, nn.Module) else model
    return TorchModuleTracer(model.eval(), args=inputs, dynamic_axes=axes, capture=way).trace()


def test_numbers_are_tensors_of_the_dtype_that_pytorch_gives_them() -> None:
    tensors = tensors_of((torch.ones(2), [3, 0.5], {"flag": True, "name": "a", "none": None, "complex": 1j}))
    assert [(t.dtype, t.tolist()) for t in tensors[1:]] == [(torch.int64, 3), (torch.float32, 0.5), (torch.bool, True)]


def test_numbers_have_places_among_the_results() -> None:
    results = Results()
    results.flat((torch.ones(2), {"size": 3}, "name", None))
    assert results.names() == ["output_0", "output_1"]
    assert list(results.others) == ["[2]: str"]


@pytest.mark.parametrize("axes", [None, {"x": {1: "T"}}])
def test_a_size_among_the_results_is_an_output(axes: Any) -> None:
    net = net_of(lambda _, x: (x * 2, {"size": x.shape[1], "mean": 1 / x.shape[1]}, 3, 0.5, True, "name"))
    captured = capture(net, axes)
    dtypes = [torch.float32, torch.int64, torch.float32, torch.int64, torch.float32, torch.bool]
    assert [o.dtype for o in captured.graph.outputs] == dtypes
    assert [o.shape for o in captured.graph.outputs[1:]] == [()] * 5
    size = captured.graph.outputs[1].producer
    assert size is not None
    assert size.arguments["s"] == (symbol("T") if axes else 7)
    assert list(captured.results.others) == ["[5]: str"]


def test_a_trace_has_the_same_outputs() -> None:
    assert [o.dtype for o in capture(net_of(lambda _, x: (x * 2, x.shape[1], 3)), way="trace").graph.outputs] == [
        torch.float32,
        torch.int64,
        torch.int64,
    ]
