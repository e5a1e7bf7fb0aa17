"""Tensors that a script makes of Python's numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from tests.releases import NEWEST


class OfNumbers(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * torch.tensor([1, -2, 3, 4]) + torch.tensor([[0.1], [0.7]])[:, None]


class OfDtype(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * torch.tensor([2.5, -1.5, 3.0, 4.0], dtype=torch.int64) + torch.tensor(True)


class OfSize(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x / torch.tensor([x.shape[1], 3])[0]


class Mask(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = x.clone()
        y[x > 0.2] = 0.5
        return y


@pytest.mark.parametrize("version", ["0.21.19", NEWEST])
@pytest.mark.parametrize("model", [OfNumbers(), OfDtype(), OfSize(), Mask()], ids=lambda model: type(model).__name__)
def test_tensors_of_numbers(model: nn.Module, version: str, tmp_path: Path) -> None:
    script = torch.jit.script(model.eval())
    export = ModelExport(script, (torch.randn(2, 7, 4),), dynamic_axes={"x": {1: "T"}}, sizes=[..., {"T": 1}])
    result = export.to(TractNNEF(version), tmp_path / "model.nnef.tar")
    assert str(result.range) == "T >= 1"
    result.assert_parity("approximate")
