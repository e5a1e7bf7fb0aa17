"""A batch that is declared to be empty at times: archives are right there, or say that they hold from 1 on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.export import Dim

from t2n_core import ModelExport, TractNNEF
from tests.nets import OfFunction

BETWEEN = ("0.20.22", "0.22.4")
VERSIONS = ["0.19.15", "0.21.19", "0.23.9", *(pytest.param(v, marks=pytest.mark.all_engines) for v in BETWEEN)]
NETS: dict[str, Callable[[Tensor], Tensor]] = {
    "merged": lambda x: x.reshape(-1, 4) * 2,
    "merged with the axis in front": lambda x: x.transpose(0, 1).reshape(-1, 4) * 2,
    "merged with the next axis": lambda x: x.transpose(0, 1).flatten(1) * 2,
    "all": lambda x: x.reshape(-1) * 2,
    "with one": lambda x: x[:, :1].reshape(-1, 4) * 2,
    "in another order": lambda x: x.reshape(5, -1, 4) * 2,
    "beside": lambda x: x.reshape(x.shape[0], 20) * 2,
    "joined": lambda x: torch.cat([x, x * 2], 1),
}
WITHOUT_EMPTY = ("merged", "merged with the axis in front", "merged with the next axis")
"""tract 0.21.6 to 0.22 take the reshape for the removal of an axis of 5."""


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", NETS)
def test_the_range_that_is_stated_is_right(name: str, version: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    axes = {"x": {0: Dim("B", min=0, max=99)}}
    export = ModelExport(OfFunction(NETS[name]).eval(), torch.randn(3, 5, 4), input_names=["x"], dynamic_axes=axes)
    found = export.to(TractNNEF(version, check_io=False), tmp_path / "model.nnef.tar").assert_parity()
    least = min(one["B"] for one in found.sizes)
    assert least == int(name in WITHOUT_EMPTY and version in ("0.21.19", "0.22.4"))
