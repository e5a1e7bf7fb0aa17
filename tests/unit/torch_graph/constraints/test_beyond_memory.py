"""An upper bound that no tensor in memory reaches is no decision."""

from __future__ import annotations

import torch

from t2n_core.torch_graph.capture.tracer import TorchModuleTracer
from t2n_core.torch_graph.frontend.inputs import bind_inputs


class Checked(torch.nn.Module):
    """Checks a size as torch.quantile does from torch 2.14 on, and another one that a tensor can have."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch._check(x.shape[0] <= 1 << 53)
        torch._check(x.shape[1] <= 1 << 24)
        return x * 2


def test_only_a_bound_that_a_tensor_reaches_is_kept() -> None:
    inputs = bind_inputs(Checked(), (torch.randn(3, 7),))
    captured = TorchModuleTracer(Checked(), args=inputs, dynamic_axes={"x": {0: "B", 1: "T"}}).trace()
    assert str(captured.range) == "B >= 1, 1 <= T <= 16777216"
