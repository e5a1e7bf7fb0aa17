"""The model of the tests of document 001, and its graph."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from t2n_core.torch_graph import TorchModuleIRGraph, TorchModuleTracer


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        unused = x * 7  # noqa: F841
        return torch.tanh(self.encode(x))

    def encode_only(self, x: torch.Tensor) -> torch.Tensor:
        return self.encode(x) + 1


NET = Net().eval()
X = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))


def graph_of(module: nn.Module = NET, *args: torch.Tensor, **options: Any) -> TorchModuleIRGraph:
    return TorchModuleIRGraph(TorchModuleTracer(module, args=args or (X,)), **options)


def kinds(graph: TorchModuleIRGraph) -> list[str]:
    return [op.kind for op in graph.op_nodes]
