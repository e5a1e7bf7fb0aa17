"""Sorting along long axes, which the engine does, in releases that sort other lines than those along the axis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from t2n_core import ModelExport, TractNNEF
from tests.nets import OfFunction


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
