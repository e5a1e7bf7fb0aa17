"""A model in training mode whose own code asks for the mode: its archive would be that of the training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.errors import InputError, T2NError
from tests.nets import net_of
from tests.releases import NEWEST

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


MODELS = pytest.mark.parametrize(
    "model", [Scaled(), WithLoss(), nn.Sequential(nn.ReLU(), Scaled())], ids=["x", "loss", "inside"]
)


@MODELS
def test_a_branch_of_the_training_is_refused_by_option(model: nn.Module, tmp_path: Path) -> None:
    inputs = tuple(X.values())
    model.train()
    with pytest.raises(InputError, match=r"is in training mode, and computes something else.*\n.*model\.eval\(\)"):
        ModelExport(model, inputs, training="refuse").to(TractNNEF(NEWEST), tmp_path / "m.tar")
    assert all(module.training for module in model.modules())
    ModelExport(model.eval(), inputs, training="refuse").to(TractNNEF(NEWEST), tmp_path / "m.tar").assert_parity()


@MODELS
def test_a_branch_of_the_training_is_exported_in_evaluation_mode(model: nn.Module, tmp_path: Path) -> None:
    model.train()
    result = ModelExport(model, tuple(X.values())).to(TractNNEF(NEWEST), tmp_path / "m.tar")
    result.assert_parity()
    assert "is in training mode" in result.notes[0]
    assert all(module.training for module in model.modules())


class Layers(nn.Module):
    """Layers whose modes differ, of which some are in training mode already on purpose."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.drop, self.linear = nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 5)
        nn.init.uniform_(self.norm.running_mean, 1.0, 2.0)  # type: ignore[arg-type]
        self.linear.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.drop(self.norm(x)))


def test_layers_are_exported_in_evaluation_mode_and_put_back(tmp_path: Path) -> None:
    model = Layers()
    flags, mean = [part.training for part in model.modules()], model.norm.running_mean.clone()  # type: ignore[union-attr]
    result = ModelExport(model, X).to(TractNNEF(NEWEST), tmp_path / "m.tar")
    result.assert_parity()
    note = "Layers is in training mode (BatchNorm1d, Dropout): exported and checked in evaluation mode, and put back"
    assert result.notes == (note,)
    assert [part.training for part in model.modules()] == flags == [True, True, True, False]
    assert torch.equal(model.norm.running_mean, mean)  # type: ignore[arg-type]
    with torch.no_grad():
        expected = Layers.forward(model.eval(), X["x"])
    np.testing.assert_array_equal(result.samples[0].expected[0], expected.numpy())


def test_flags_are_put_back_after_a_refusal() -> None:
    model = nn.Sequential(nn.Dropout(0.5), net_of(lambda self, x: x[:, : int(x.sum())]))
    with pytest.raises(T2NError):
        ModelExport(model, X).lower(TractNNEF(NEWEST))
    assert all(part.training for part in model.modules())


def test_the_option_refuses_layers_in_training_mode() -> None:
    for layer in (nn.Dropout(0.5), nn.BatchNorm1d(4)):
        with pytest.raises(T2NError):
            ModelExport(layer, tuple(X.values()), training="refuse").lower(TractNNEF(NEWEST))


def test_a_script_is_exported_in_evaluation_mode(tmp_path: Path) -> None:
    script = torch.jit.script(Layers())
    result = ModelExport(script, X).to(TractNNEF(NEWEST), tmp_path / "m.tar")
    result.assert_parity()
    assert script.training
    assert script.drop.training
    assert "is in training mode" in result.notes[0]


def test_a_capture_by_trace_is_in_evaluation_mode(tmp_path: Path) -> None:
    model = Layers()
    result = ModelExport(model, X, capture="trace").to(TractNNEF(NEWEST), tmp_path / "m.tar")
    result.assert_parity()
    assert model.drop.training


def test_a_model_without_such_layers_has_no_note(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.0), nn.ReLU())
    assert ModelExport(model, tuple(X.values())).to(TractNNEF(NEWEST), tmp_path / "m.tar").notes == ()


def test_a_branch_that_changes_no_number_is_exported(tmp_path: Path) -> None:
    model = net_of(lambda self, x: torch.relu(x) if self.training else x.clamp(min=0))
    ModelExport(model, X).to(TractNNEF(NEWEST), tmp_path / "m.tar").assert_parity()
    assert model.training
