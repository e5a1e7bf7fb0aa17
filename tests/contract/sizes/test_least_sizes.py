"""Padding up to a least size: archives are right at smaller and at larger sizes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from t2n_core import ModelExport, TractNNEF
from tests.nets import net_of
from tests.releases import NEWEST


@pytest.mark.parametrize("version", ["0.21.19", NEWEST])
@pytest.mark.parametrize(
    "model",
    [
        net_of(lambda _, x: F.pad(x, (0, torch.sym_max(5 - x.shape[1], 0))) * 2.0),
        net_of(lambda _, x: torch.cat([x, x.new_zeros(x.shape[0], torch.sym_max(5 - x.shape[1], 0))], 1) * 2.0),
        net_of(lambda _, x: x[:, :5].sum(1)),
    ],
    ids=["padded", "joined", "cropped"],
)
def test_both_sides_of_a_least_size_are_right(model: nn.Module, version: str, tmp_path: Path) -> None:
    export = ModelExport(model, {"x": torch.randn(2, 7)}, dynamic_axes={"x": {1: "T"}})
    outcome = export.to(TractNNEF(version), tmp_path / "m.tar").assert_parity("approximate")
    sizes = {size["T"] for size in outcome.sizes}
    assert outcome.range == "T >= 1"
    assert min(sizes) < 5 < max(sizes)
