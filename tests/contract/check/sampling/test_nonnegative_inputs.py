"""Nets whose inputs are never negative pass with inputs that are drawn for them, without `inputs=`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from tests.nets import net_of
from tests.releases import NEWEST


def drawn(*shape: int) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(0))


def sampled_along_rays(bins: Tensor, weights: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """Return places between `bins` by the inverse of a distribution: a search in its sums, which have to be sorted."""
    weights = weights + 1e-5
    sums = F.pad(torch.cumsum(weights / weights.sum(-1, keepdim=True), -1), (1, 0))
    u = u.expand([*sums.shape[:-1], u.shape[-1]]).contiguous()
    after = torch.searchsorted(sums, u, right=True)
    ends = torch.stack([(after - 1).clamp(min=0), after.clamp(max=sums.shape[-1] - 1)], -1)
    shape = [ends.shape[0], ends.shape[1], sums.shape[-1]]
    low, high = torch.gather(sums.unsqueeze(1).expand(shape), 2, ends).unbind(-1)
    first, last = torch.gather(bins.unsqueeze(1).expand(shape), 2, ends).unbind(-1)
    width = torch.where(high - low < 1e-5, torch.ones_like(low), high - low)
    return first + (u - low) / width * (last - first), after


def harmonics(pitch: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return sines of a pitch and of its multiples, by phases that are resized, and by ones that wrap around."""
    pitch = F.interpolate(pitch.unsqueeze(1), scale_factor=20.0, mode="nearest").transpose(1, 2)
    turns = (pitch * torch.arange(1, 5, dtype=torch.float32) / 8000) % 1
    turns = F.interpolate(turns.transpose(1, 2), scale_factor=1 / 20, mode="linear").transpose(1, 2)
    phase = torch.cumsum(turns, dim=1) * 2 * math.pi
    phase = F.interpolate(phase.transpose(1, 2) * 20, scale_factor=20.0, mode="linear").transpose(1, 2)
    voiced = (pitch > 10).float()
    wrapped = torch.cumsum(pitch / 8000, 1) % 1
    back = F.pad(-((wrapped[:, 1:] - wrapped[:, :-1]) < 0).float(), (0, 0, 1, 0))
    whole = torch.sin(torch.cumsum(pitch / 8000 + back, dim=1) * 2 * math.pi)
    return torch.sin(phase) * 0.1 * voiced + (1 - voiced) * 0.03, whole, voiced


NETS: dict[str, tuple[nn.Module, dict[str, Tensor], dict[str, Any]]] = {
    "a distribution along rays": (
        net_of(lambda _, bins, weights, u: sampled_along_rays(bins, weights, u)),
        {
            "bins": torch.sort(drawn(3, 9), -1)[0],
            "weights": drawn(3, 8) * (drawn(8, 3).mT > 0.3),
            "u": drawn(1, 5),
        },
        {"bins": {0: "R", 1: torch.export.Dim("K") + 1}, "weights": {0: "R", 1: "K"}, "u": {1: "S"}},
    ),
    "a pitch": (
        net_of(lambda _, pitch: harmonics(pitch)),
        {"pitch": (drawn(1, 12) * 300 + 80) * (drawn(12, 1).mT > 0.2)},
        {"pitch": {0: "B", 1: "T"}},
    ),
}


@pytest.mark.parametrize("version", ["0.21.19", NEWEST])
@pytest.mark.parametrize("name", NETS)
def test_nets(name: str, version: str, tmp_path: Path) -> None:
    model, example, axes = NETS[name]
    export = ModelExport(model.eval(), example, dynamic_axes=axes)
    assert len(export.samples) > 1
    export.to(TractNNEF(version, check_io=False), tmp_path / "model.nnef.tar").assert_parity()
