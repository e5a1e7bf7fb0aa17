"""The maximum of clamped numbers, which needs no correction for NaN and minus infinity."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from tests.releases import NEWEST, OLDEST, on_each_line

LOUD = (torch.tensor([[0.0, 1.0, 4.0], [2.0, 0.5, float("inf")]]),)
SILENT = (torch.full((2, 3), -1.0),)
NAN = (torch.tensor([[0.0, 1.0, 4.0], [2.0, float("nan"), 3.0]]),)


class Decibels(nn.Module):
    """Limits decibels to 80 below the largest, as torchaudio does."""

    def forward(self, x: Tensor) -> Tensor:
        decibels = 10.0 * torch.log10(x.clamp(min=1e-10)) - 0.0
        return torch.maximum(decibels, decibels.amax((0, 1), keepdim=True) - 80.0)


@pytest.mark.parametrize("version", on_each_line(OLDEST, "0.21.19", NEWEST))
def test_a_clamped_maximum_is_one_operation(version: str, tract_engine: Any, tmp_path: Path) -> None:
    tract_engine(version)
    export = ModelExport(Decibels(), (torch.rand(2, 3),), extra_inputs=[LOUD, SILENT])
    result = export.to(TractNNEF(version), tmp_path / "model.nnef.tar")
    assert not {operation.name for operation in result.graph.operations} & {"ge", "ne", "select"}
    result.assert_parity("approximate")


def test_nan_is_kept_where_that_is_asked_for(tmp_path: Path) -> None:
    export = ModelExport(Decibels(), (torch.rand(2, 3),), extra_inputs=[LOUD, SILENT, NAN])
    export.to(TractNNEF(NEWEST, keep_nan=True), tmp_path / "model.nnef.tar").assert_parity("approximate")
