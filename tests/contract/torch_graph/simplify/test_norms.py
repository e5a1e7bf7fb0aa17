"""A batch norm behind a weight that cannot take it in."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from t2n_core import ModelExport, TractNNEF


def test_a_weight_that_is_stored_in_blocks_stays_as_it_is(tmp_path: Path) -> None:
    target = TractNNEF("0.23.9", check_io=False, weights="q4_0")
    model = nn.Sequential(nn.Linear(64, 3), nn.BatchNorm1d(3)).eval()
    export = ModelExport(model, (torch.randn(4, 64),))
    assert "aten::batch_norm" in [op.kind.split(".")[0] for op in export.simplified(target).op_nodes]
    export.to(target, tmp_path / "m.nnef.tar").assert_parity("approximate")
