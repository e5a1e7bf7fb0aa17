"""Modules kept whole: what declares the shapes of their results may read data, or is refused without a trace."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core.errors import CaptureError
from t2n_core.op.custom_extractors import ModuleInfoExtractor
from t2n_core.torch_graph.capture.tracer import CapturedModel, TorchModuleTracer, bind_inputs
from t2n_core.torch_graph.custom_ops.module_calls import MODULE_CALL


class Reading(nn.Module):
    """Its forward runs a function that reads data."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


class Plain(ModuleInfoExtractor):
    """Keeps a module whole without `declare_outputs`."""

    MODULE_CLASS = Reading

    def convert_to_nnef(self, g: Any, module: Any, inputs: Any, params: Any) -> Any:
        return [inputs[0]]


PLAIN = ModuleInfoExtractor.get_by_module(Reading(torch.relu))
Plain.unregister()


def capture(model: nn.Module, extractor: ModuleInfoExtractor | None = None) -> CapturedModel:
    inputs = bind_inputs(model.eval(), (torch.randn(2, 3),))
    return TorchModuleTracer(
        model,
        args=inputs,
        dynamic_axes={"x": {0: "B"}} if isinstance(model, Reading) else None,
        find_extractor=lambda m: extractor,
    ).trace()


def decides(x: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.sum() > 0 else x


def selects(x: torch.Tensor) -> torch.Tensor:
    return x[x > 0]


def through_numpy(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(x.numpy() * 2)


@pytest.mark.parametrize("function", [decides, selects, through_numpy])
def test_a_refused_declaration_leaves_pytorch_as_it_was(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    def refuse_and_capture() -> None:
        with pytest.raises(CaptureError, match="`declare_outputs` of Plain can return empty tensors"):
            capture(Reading(function), PLAIN)
        gc.collect()
        assert capture(nn.Linear(3, 3)).graph.op_nodes
        done.append(True)

    done: list[bool] = []
    refuse_and_capture()
    threads = [threading.Thread(target=refuse_and_capture) for _ in range(2)]
    for thread in threads:  # PyTorch's own capture is not for several threads at once
        thread.start()
        thread.join()
    refuse_and_capture()
    assert len(done) == 4


@pytest.mark.parametrize(
    "function",
    [lambda x: x * x.sum().item(), lambda x: x * x.sum(0).tolist()[0], lambda x: x + x[x > 0].sum()],
    ids=["item", "tolist", "selected"],
)
def test_values_that_a_declaration_reads_do_not_matter_to_its_shapes(
    function: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    captured = capture(Reading(function), PLAIN)
    (node,) = [op for op in captured.graph.op_nodes if op.kind == f"{MODULE_CALL}.Plain"]
    (result,) = node.outputs
    assert result is not None
    assert str(result.shape) == str(captured.graph.inputs[0].shape)
    assert capture(nn.Linear(3, 3)).graph.op_nodes
