"""Operations of many parts that engines load as one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from tests.releases import NEWEST


def operators(model: nn.Module, x: Tensor, folder: Path) -> Counter[str]:
    result = ModelExport(model.eval(), (x,)).to(TractNNEF(NEWEST), folder / "m.nnef.tar")
    return Counter(one.name for one in result.graph.operations)


@pytest.mark.parametrize(("extent", "size"), [(8, 7), (13, 4), (5, 2)])
def test_overlapping_windows_of_one_length_are_one_pooling(extent: int, size: int, tmp_path: Path) -> None:
    found = operators(nn.AdaptiveAvgPool2d(size), torch.randn(2, 3, extent, extent), tmp_path)
    assert found["box"] == 1
    assert not found["slice"] + found["concat"]


def test_windows_of_different_lengths_are_slices(tmp_path: Path) -> None:
    assert operators(nn.AdaptiveAvgPool2d((5, None)), torch.randn(2, 3, 17, 4), tmp_path)["slice"] == 5
