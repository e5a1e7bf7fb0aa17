"""Runs of the model itself leave it as it was."""

from __future__ import annotations

import torch
from torch import nn

from t2n_core.torch_graph.capture.tracer import TorchModuleTracer, bind_inputs


class Counts(nn.Module):
    """Counts its calls in a buffer and a list."""

    calls: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))
        self.seen: list[int] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.seen.append(x.shape[0])
        return x * torch.rand(1)


def test_a_tracer_that_tries_other_sizes_leaves_the_model_as_it_was() -> None:
    model = Counts().eval()
    tracer = TorchModuleTracer(model, args=bind_inputs(model, (torch.randn(2, 3),)))
    x = torch.randn(5, 3)
    before = torch.random.get_rng_state()
    assert tracer._runs([x])
    assert model.calls.item() == 0
    assert model.seen == []
    assert torch.equal(torch.random.get_rng_state(), before)
