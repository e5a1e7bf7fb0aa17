"""A model in training mode whose own code asks for the mode: its archive would be that of the training."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.errors import InputError
from tests.nets import net_of

X = {"x": torch.randn(3, 4)}


class Scaled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if self.training else x * 3


class WithLoss(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> object:
        y = self.linear(x)
        return (y, y.sum()) if self.training else y


@pytest.mark.parametrize(
    "model", [Scaled(), WithLoss(), nn.Sequential(nn.ReLU(), Scaled())], ids=["x", "loss", "inside"]
)
def test_a_branch_of_the_training_is_refused(model: nn.Module, tmp_path: Path) -> None:
    inputs = tuple(X.values())
    with pytest.raises(InputError, match=r"is in training mode, and computes something else.*\n.*model\.eval\(\)"):
        ModelExport(model, inputs).to(TractNNEF("0.23.9"), tmp_path / "m.tar")
    assert all(module.training for module in model.modules())
    ModelExport(model.eval(), inputs).to(TractNNEF("0.23.9"), tmp_path / "m.tar").assert_parity()


def test_a_branch_that_changes_no_number_is_exported_as_it_is(tmp_path: Path) -> None:
    model = net_of(lambda self, x: torch.relu(x) if self.training else x.clamp(min=0))
    ModelExport(model, X).to(TractNNEF("0.23.9"), tmp_path / "m.tar").assert_parity()
    assert model.training
