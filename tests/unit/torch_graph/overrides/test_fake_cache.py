"""A captured program is the same without the work that nobody reads."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch.fx.experimental import proxy_tensor

from t2n_core import ModelExport
from t2n_core.torch_graph.overrides.fake_cache import cheaper_capture
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
    plain, asked = proxy_tensor._extract_tensor_metadata, []

    def noting(value: Any, include_contiguity: bool = True) -> Any:
        asked.append(include_contiguity)
        return plain(value, include_contiguity)

    with patch.object(proxy_tensor, "_extract_tensor_metadata", noting), cheaper_capture():
        captured()
    assert asked
    assert not any(asked)


def test_a_tensor_that_is_made_in_python_costs_no_second_trace() -> None:
    """PyTorch writes `detach_` after it, as in the first layer of an empty cache."""
    with patch.object(torch.export.ExportedProgram, "run_decompositions", side_effect=AssertionError):
        net = net_of(lambda _, x: torch.cat([torch.tensor([]), x]) * torch.tensor([1.0, 2.0]))
        graph = ModelExport(net, torch.randn(3, 2)).captured.graph
    assert [op.kind for op in graph.op_nodes] == ["aten::cat", "aten::mul.Tensor"]
