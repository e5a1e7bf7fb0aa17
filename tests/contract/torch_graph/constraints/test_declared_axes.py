"""Multiples of a size that a user declares, in the engine."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.export import Dim

from t2n_core import ModelExport, TractNNEF
from t2n_core.errors import LowerError
from t2n_core.torch_graph.constraints.declared_axes import DynamicAxes
from tests.releases import NEWEST


class Strided(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(3, 5, 5, stride=4)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        pieces = y[:, :, 1:].reshape(y.shape[0], 3, -1, 4).mean(-1)
        return x.relu(), self.conv(y) + pieces.mean(1, keepdim=True) * y.shape[2]


@pytest.mark.parametrize("version", ["0.19.15", "0.21.5", "0.21.19", NEWEST])
@pytest.mark.parametrize("axes", [{"x": {1: Dim("T"), 0: "B"}}, {}], ids=["beside", "alone"])
def test_multiples_in_the_engine(axes: DynamicAxes, version: str, tmp_path: Path) -> None:
    inputs = {"x": torch.randn(2, 5, 4), "y": torch.randn(3, 3, 21)}
    export = ModelExport(Strided().eval(), inputs, dynamic_axes={**axes, "y": {2: 4 * Dim("T") + 1}})
    if version < "0.21" and not axes:
        with pytest.raises(LowerError, match=r"does not find T from an axis of 4\*T \+ 1"):
            export.lower(TractNNEF(version))
        return
    result = export.to(TractNNEF(version), tmp_path / "m.nnef.tgz")
    outcome = result.assert_parity("approximate")
    assert {sizes["T"] for sizes in outcome.sizes} >= {1, 5}
