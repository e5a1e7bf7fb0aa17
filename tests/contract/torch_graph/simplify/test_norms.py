"""Batch norms behind weights: those that cannot take one in, and those of many channels."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.profiling.profile import profile_archive
from tests.releases import NEWEST


def test_a_weight_that_is_stored_in_blocks_stays_as_it_is(tmp_path: Path) -> None:
    target = TractNNEF(NEWEST, check_io=False, weights="q4_0")
    model = nn.Sequential(nn.Linear(64, 3), nn.BatchNorm1d(3)).eval()
    export = ModelExport(model, (torch.randn(4, 64),))
    assert "aten::batch_norm" in [op.kind.split(".")[0] for op in export.simplified(target).op_nodes]
    export.to(target, tmp_path / "m.nnef.tar").assert_parity("approximate")


@pytest.mark.parametrize("version", ["0.21.10", "0.21.11", "0.21.19", "0.22.4", "0.23.0", NEWEST])
def test_norms_of_many_channels_are_folded_before_the_first_run(version: str, tmp_path: Path) -> None:
    torch.manual_seed(4)
    norm = nn.BatchNorm1d(1100)
    for name, tensor in [*norm.named_parameters(), *norm.named_buffers()]:
        if tensor.is_floating_point():
            tensor.data = torch.rand_like(tensor) + ("var" in name)
    model = nn.Sequential(nn.Conv1d(40, 1100, 3), norm).eval()
    result = ModelExport(model, torch.randn(1, 40, 9)).to(TractNNEF(version), tmp_path / "a.nnef.tar")
    profile = profile_archive(result.target.engine(), result.archive, result.samples[0].inputs, seconds=0.05)
    assert {line.operator for line in profile.lines} == {"conv", "external"}


def test_no_barrier_stands_between_a_norm_and_a_strided_convolution(tmp_path: Path) -> None:
    """The norm's numbers come out of a `reshape` of weights, over which no stride is moved."""
    model = nn.Sequential(nn.BatchNorm1d(3), nn.ReLU(), nn.Conv1d(3, 4, 1, stride=2)).eval()
    result = ModelExport(model, torch.randn(2, 3, 9)).to(TractNNEF(NEWEST), tmp_path / "a.nnef.tar")
    assert "tract_core_trilu" not in {operation.name for operation in result.graph.operations}
    result.assert_parity("approximate")
