"""Cases of the suite `models`: their numbers spread as after training, whatever a library starts with."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

from conformance.cases.models.case import ModelCase, image


class Block(nn.Module):
    """A kernel and a norm whose gains start with this mean and deviation."""

    def __init__(self, width: int, mean: float, deviation: float) -> None:
        super().__init__()
        self.kernel, self.norm = nn.Conv2d(width, 8, 3, padding=1), nn.BatchNorm2d(8)
        nn.init.normal_(self.norm.weight, mean, deviation)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return functional.silu(self.norm(self.kernel(input)))


@pytest.mark.parametrize(("mean", "deviation"), [(1.0, 0.0), (0.0, 0.02)], ids=["ones", "small"])
def test_outputs_move_with_the_inputs_whatever_gains_a_library_starts_with(mean: float, deviation: float) -> None:
    def make() -> nn.Module:
        return nn.Sequential(*(Block(width, mean, deviation) for width in (3, 8, 8, 8, 8, 8)))

    model, inputs = ModelCase(make, image(2, 3, 8, 8, name="input")).build(seed=1)
    with torch.no_grad():
        moved = model(torch.randn(2, 3, 8, 8)) - model(**inputs)
    assert moved.std() > 0.1


def test_gains_of_weight_norms_leave_numbers_as_large_as_they_are() -> None:
    def make() -> nn.Module:
        return nn.Sequential(*(weight_norm(nn.Conv2d(8, 8, 3, padding=1)) for _ in range(8)))

    model, inputs = ModelCase(make, image(2, 8, 8, 8, name="input")).build(seed=1)
    with torch.no_grad():
        assert 0.1 < model(**inputs).std() < 10
