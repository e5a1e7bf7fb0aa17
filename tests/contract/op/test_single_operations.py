"""Operations of many parts that engines load as one, sorting along long axes, and bins of counts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.parity.outcome import Stage, Status
from tests.nets import OfFunction
from tests.releases import NEWEST


@pytest.mark.parametrize("version", ["0.21.8", "0.21.10"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_long_axes_are_sorted_by_the_engine(version: str, axis: int, tract_engine: Any, tmp_path: Path) -> None:
    tract_engine(version)
    shape = [2, 4, 3]
    shape[axis] = 130
    x = torch.randn(shape, generator=torch.Generator().manual_seed(axis))
    export = ModelExport(OfFunction(lambda x: x.topk(3, axis)).eval(), (x,), input_names=["x"])
    result = export.to(TractNNEF(version, check_io=False), tmp_path / "model.nnef.tar")
    assert "tract_core_topk" in {operation.name for operation in result.graph.operations}
    result.assert_parity("exact")


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


def operators(model: nn.Module, x: Tensor, folder: Path) -> Counter[str]:
    result = ModelExport(model.eval(), (x,)).to(TractNNEF(NEWEST), folder / "m.nnef.tar")
    return Counter(operation.name for operation in result.graph.operations)


@pytest.mark.parametrize(("extent", "size"), [(8, 7), (13, 4), (5, 2)])
def test_overlapping_windows_of_one_length_are_one_pooling(extent: int, size: int, tmp_path: Path) -> None:
    counts = operators(nn.AdaptiveAvgPool2d(size), torch.randn(2, 3, extent, extent), tmp_path)
    assert counts["box"] == 1
    assert not counts["slice"] + counts["concat"]


def test_windows_of_different_lengths_are_slices(tmp_path: Path) -> None:
    assert operators(nn.AdaptiveAvgPool2d((5, None)), torch.randn(2, 3, 17, 4), tmp_path)["slice"] == 5
