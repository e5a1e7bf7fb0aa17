"""What the archive says of the sizes of dynamic axes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.parity.samples import Sample


def extensions(version: str, tmp_path: Path) -> list[str]:
    export = ModelExport(nn.ReLU(), (torch.randn(5, 4),), input_names=["x"], dynamic_axes={"x": {0: "T"}})
    return export.to(TractNNEF(version, check_io=False), tmp_path / "m.nnef.tar").graph.extensions


def test_a_size_is_at_least_1_where_that_can_be_said(tmp_path: Path) -> None:
    assert extensions("0.21.7", tmp_path) == ["tract_symbol T", "tract_assert T >= 1"]


def test_scenarios_check_it_where_they_can(tmp_path: Path) -> None:
    assert extensions("0.21.8", tmp_path) == [
        "tract_symbol T",
        "tract_assert T >= 1",
        "tract_assert range: T > 0",
        "tract_assert range_again: T > 0",
    ]


def test_old_versions_know_the_symbol_only(tmp_path: Path) -> None:
    assert extensions("0.21.5", tmp_path) == ["tract_symbol T"]


@pytest.mark.parametrize("version", ["0.21.6", "0.21.19", "0.22.4", "0.23.9"])
def test_size_1_is_right(version: str, tmp_path: Path) -> None:
    model = nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 6), nn.GELU(), nn.Softmax(-1)).eval()
    x = torch.randn(1, 5, 4)
    export = ModelExport(
        model, (x,), input_names=["x"], dynamic_axes={"x": {0: "B", 1: "T"}}, extra_inputs=[(torch.randn(1, 1, 4),)]
    )
    result = export.to(TractNNEF(version, check_io=False), tmp_path / "m.nnef.tar")
    result.assert_parity("approximate")
    assert any(isinstance(s, Sample) and s.inputs[0].shape == (1, 1, 4) for s in result.samples)
