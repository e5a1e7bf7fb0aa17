"""Operands that are expanded once for several operations give the same outputs at all sizes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from tests.releases import NEWEST


class Rotary(nn.Module):
    """Queries and keys of several layers, rotated by the same positions, which other operators read too."""

    def forward(self, q: Tensor, k: Tensor, x: Tensor) -> tuple[Tensor, ...]:
        angles = torch.arange(q.shape[2])[None, None, :, None] * torch.linspace(0.1, 1.0, q.shape[3])
        cos, sin = angles.cos(), angles.sin()
        for _ in range(4):
            q, k = (v * cos + torch.cat([-v[..., 3:], v[..., :3]], -1) * sin for v in (q, k))
        return q - cos, cos - k, torch.maximum(q, sin), q / (1.5 + cos), cos * x, q.transpose(1, 2)


@pytest.mark.parametrize("version", ["0.22.4", "0.23.0", "0.23.5", NEWEST])
def test_outputs_at_all_sizes(version: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    inputs = {"q": torch.randn(1, 4, 5, 6), "k": torch.randn(1, 2, 5, 6), "x": torch.randn(3, 1, 5, 6)}
    export = ModelExport(Rotary(), inputs, dynamic_axes={"q": {2: "S"}, "k": {2: "S"}, "x": {0: "B", 2: "S"}})
    result = export.to(TractNNEF(version), tmp_path / "rotary.nnef.tar")
    repeats = [o.arguments["repeats"] for o in result.graph.operations if o.name == "tile"]
    assert (sorted(repeats) == [[1, 2, 1, 1]] * 2 + [[1, 4, 1, 1]] * 2) == version.startswith("0.23")
    result.assert_parity("approximate")
