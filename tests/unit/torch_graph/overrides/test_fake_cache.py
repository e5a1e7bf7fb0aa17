"""A captured program is the same without the work that nobody reads."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch.fx.experimental import proxy_tensor

from t2n_core import ModelExport
from t2n_core.torch_graph.overrides.fake_cache import cheaper_capture, compile_at_first_call
from tests.nets import net_of


class Net(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(6):
            x = torch.sigmoid(x)
        return x[:, 2:].transpose(1, 2).reshape(x.shape[0], -1)


def captured() -> list[tuple[str, str, str]]:
    """Return the nodes with their shapes and strides."""
    free = {"x": {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}}
    program = torch.export.export(Net(), (torch.randn(5, 7, 3),), dynamic_shapes=free, strict=False)
    values = [(node.name, node.meta.get("val")) for node in program.graph.nodes]
    return [(n, str(v.shape), str(v.stride())) for n, v in values if isinstance(v, torch.Tensor)]


def test_the_program_is_that_of_pytorch() -> None:
    plain = captured()
    with cheaper_capture():
        assert captured() == plain


def test_no_memory_format_is_asked_for() -> None:
    plain, flags = proxy_tensor._extract_tensor_metadata, []

    def noting(value: Any, include_contiguity: bool = True) -> Any:
        flags.append(include_contiguity)
        return plain(value, include_contiguity)

    with patch.object(proxy_tensor, "_extract_tensor_metadata", noting), cheaper_capture():
        captured()
    assert flags
    assert not any(flags)


def test_no_code_is_written_for_a_graph() -> None:
    free = {"x": {0: "N"}}
    export = ModelExport(Net(), torch.randn(5, 7, 3), dynamic_axes=free)
    with patch.object(torch.fx.Graph, "python_code", side_effect=AssertionError):
        assert len(export.captured.graph.op_nodes) > 6


def test_a_graph_module_of_the_capture_is_compiled_when_it_is_called() -> None:
    traced = torch.fx.symbolic_trace(Net())
    with compile_at_first_call():
        deferred = torch.fx.GraphModule(traced, traced.graph)
        assert "_code" not in vars(deferred)
    x = torch.randn(5, 7, 3)
    assert torch.equal(deferred(x), Net()(x))
    assert deferred.code == traced.code
    with compile_at_first_call():
        program = torch.export.export(Net(), (x,), strict=False)
    assert torch.equal(program.module()(x), Net()(x))


def test_a_graph_module_with_code_is_compiled_at_once() -> None:
    """One of the user's has its new code when the capture has ended."""
    traced = torch.fx.symbolic_trace(Net())
    with compile_at_first_call():
        next(node for node in traced.graph.nodes if node.target is torch.sigmoid).target = torch.tanh
        traced.recompile()
    assert "tanh" in traced.code


def test_a_tensor_that_is_made_in_python_costs_no_second_trace() -> None:
    """PyTorch writes `detach_` after it, as in the first layer of an empty cache."""
    with patch.object(torch.export.ExportedProgram, "run_decompositions", side_effect=AssertionError):
        net = net_of(lambda _, x: torch.cat([torch.tensor([]), x]) * torch.tensor([1.0, 2.0]))
        graph = ModelExport(net, torch.randn(3, 2)).captured.graph
    assert [op.kind for op in graph.op_nodes] == ["aten::cat", "aten::mul.Tensor"]
