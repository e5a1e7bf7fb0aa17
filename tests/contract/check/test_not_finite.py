"""A pass whose outputs are NaN or infinite for finite inputs says how many of them are."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from t2n_core import ModelExport, TractNNEF
from tests.nets import OfFunction
from tests.releases import NEWEST


@pytest.mark.parametrize("compute", [torch.log, lambda x: x.abs() / (x > 0)], ids=["log", "quotient"])
def test_outputs_with_nan_or_infinities_are_noted(compute, tmp_path: Path) -> None:
    result = ModelExport(OfFunction(compute), torch.randn(20, 30)).to(TractNNEF(NEWEST), tmp_path / "m.tar")
    outcome = result.assert_parity()
    (note,) = outcome.notes
    assert "is NaN or infinite in" in note
    assert 0.3 < outcome.outputs[0].not_finite < 0.7


def test_finite_outputs_have_no_note(tmp_path: Path) -> None:
    result = ModelExport(OfFunction(torch.exp), torch.randn(20, 30)).to(TractNNEF(NEWEST), tmp_path / "m.tar")
    assert result.check_parity().notes == []
