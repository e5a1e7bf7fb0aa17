"""Nodes know their lines as PyTorch notes them, and no traceback is taken for it."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.fx import proxy

from t2n_core.torch_graph.capture.tracer import TorchModuleTracer
from t2n_core.torch_graph.frontend.inputs import bind_inputs
from t2n_core.torch_graph.overrides.stack_traces import short_stack_traces
from tests.nets import net_of


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.helper(self.linear(x)).reshape(x.shape[0] * 3)

    def helper(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x) + 1.0


def outer() -> nn.Module:
    return net_of(lambda self, x: self.layers(x) * (x.shape[0] + 2), layers=nn.Sequential(Inner(), nn.ReLU()))


def traces() -> list[Any]:
    free = {"x": {0: torch.export.Dim.DYNAMIC}}
    program = torch.export.export(outer().eval(), (torch.randn(5, 4),), dynamic_shapes=free, strict=False)
    return [(node.name, node.meta.get("stack_trace")) for node in program.graph.nodes]


def test_the_text_is_that_of_pytorch() -> None:
    plain = traces()
    with short_stack_traces():
        short = traces()
    assert short == plain
    noted = {name: trace for name, trace in short if trace}
    assert noted["tanh"].count("in forward") > 1
    assert "self.helper(self.linear(x))" in noted["tanh"]
    assert "x.shape[0] * 3" in noted["mul"]


def deep(frames: int, work: Callable[[], Any]) -> Any:
    return work() if frames == 0 else deep(frames - 1, work)


@pytest.mark.parametrize("frames", [0, 200])
def test_no_traceback_is_looked_up(frames: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = torch._C._profiler.symbolize_tracebacks
    calls: list[object] = []
    monkeypatch.setattr(
        torch._C._profiler, "symbolize_tracebacks", lambda traces: calls.append(traces) or plain(traces)
    )
    monkeypatch.setattr(traceback, "extract_stack", lambda *_, **__: calls.append(1) or [])
    inputs = bind_inputs(outer(), (torch.randn(5, 4),))
    graph = deep(frames, TorchModuleTracer(outer().eval(), args=inputs).trace).graph
    sources = [op.origin.source for op in graph.op_nodes if op.origin and "tanh" in op.kind]
    assert [source.endswith("(x.shape[0] * 3)`") for source in sources] == [True]
    assert not calls


def test_what_was_there_comes_back() -> None:
    before = proxy.CapturedTraceback
    with pytest.raises(ZeroDivisionError), short_stack_traces():
        raise ZeroDivisionError
    assert proxy.CapturedTraceback is before


def test_a_pytorch_that_takes_them_elsewhere_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(proxy, "CapturedTraceback")
    with short_stack_traces():
        assert not hasattr(proxy, "CapturedTraceback")
