"""Runs of a float32 model in float64, including the tensors that it creates, casts and holds."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from t2n_core.torch_graph.frontend.sources import Source


class Positions(nn.Module):
    """Computes with tensors that it creates, casts and holds."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.turns = nn.Parameter(torch.randn(5, 7)), torch.linspace(0.1, 0.9, 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        positions = torch.linspace(-1, 1, 5).expand(3, 5)
        scale = torch.full((7,), 0.1, dtype=torch.float32)
        result: torch.Tensor = ((x + positions).float() @ self.weight).matmul(torch.diag(self.turns)) * scale
        return result


def test_all_tensors_are_float64() -> None:
    torch.manual_seed(0)
    model, x = Positions(), torch.randn(3, 5, dtype=torch.float64)
    positions = torch.linspace(-1, 1, 5, dtype=torch.float64)
    turns = model.turns.double()
    expected = ((x + positions) @ model.weight.double()) * turns * torch.full((7,), 0.1, dtype=torch.float64)
    output = Source(model).run_in_float64((x,), {})
    assert output.dtype == torch.float64
    torch.testing.assert_close(output, expected, rtol=1e-14, atol=1e-14)


class Bits(nn.Module):
    """Reads the exponents of float32, which has other bits than float64."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        exponents = (x.float().view(torch.int32) >> 23) & 255
        assert exponents.shape == x.shape
        return exponents * x


def test_a_model_that_reads_bits_runs_with_float64_weights_alone() -> None:
    source, x = Source(Bits()), torch.randn(3, 5, dtype=torch.float64)
    with pytest.raises(TypeError, match="the bits of float32 are not those of float64"):
        source.run_in_float64((x,), {})
    assert torch.equal(source.run_with_float64_weights((x,), {}), Bits()(x))


def test_the_default_dtype_is_as_before() -> None:
    model = nn.Linear(3, 4)
    with pytest.raises(RuntimeError):
        Source(model).run_in_float64((torch.randn(5, 2),), {})
    Source(model).run_in_float64((torch.randn(5, 3),), {})
    assert torch.get_default_dtype() == torch.float32
