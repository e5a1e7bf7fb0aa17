"""`bincount` with a length has as many bins: for a larger number, where PyTorch has more, an engine fails."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.parity.outcome import Stage, Status
from tests.releases import NEWEST


class Counts(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.bincount(x, minlength=4)


@pytest.mark.parametrize("version", ["0.19.15", NEWEST])
def test_a_number_beyond_the_bins_has_no_counts(version: str, tmp_path: Path) -> None:
    small, large = torch.tensor([0, 1, 3, 3, 2]), torch.tensor([0, 1, 3, 4, 2])
    result = ModelExport(Counts(), small).to(TractNNEF(version), tmp_path / "a.tar")
    result.assert_parity("exact")
    outcome = (
        ModelExport(Counts(), small, extra_inputs=[(large,)]).to(TractNNEF(version), tmp_path / "b.tar").check_parity()
    )
    assert outcome.status in (Status.ERROR, Status.CRASH)
    assert outcome.stage is Stage.RUN
