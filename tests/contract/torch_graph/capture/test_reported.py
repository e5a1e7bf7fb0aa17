"""Nets of suite `reported` in the newest release, those that failed to load in others there, and hints as typed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from conformance.cases.reported.case import Function, images
from conformance.suites.test_reported import NETS, export_of
from t2n_core import TractNNEF
from t2n_core.errors import CaptureError, DataDependentError
from t2n_core.export.model import ModelExport
from tests.releases import NEWEST

LEVELS = ("a level cut out, then sampled", "a level split off, then sampled", "deformable encoder")


SLOW = "peaks of a heat map"  # its sums of comparisons over all pairs of places take 10 s


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.nightly) if name == SLOW else name for name in NETS]
)
def test_at_all_sizes(name: str, tmp_path: Path) -> None:
    outcome = export_of(name).to(TractNNEF(NEWEST), tmp_path / "net.nnef.tar").assert_parity("approximate")
    checked = [dict(sizes) for sizes in outcome.sizes]
    assert all(sizes in checked for sizes in NETS[name].sizes)


@pytest.mark.parametrize("version", ["0.21.19", "0.22.4"])
@pytest.mark.parametrize("name", LEVELS)
def test_levels_load_where_products_are_compared_as_they_are_written(name: str, version: str, tmp_path: Path) -> None:
    export_of(name).to(TractNNEF(version), tmp_path / "net.nnef.tar").assert_parity("approximate")


def _nearest(m: Any, x: torch.Tensor) -> torch.Tensor:
    return F.interpolate(m.table, scale_factor=tuple(float(size) / 5 for size in x.shape[2:]), mode="nearest") + x


def _nearest_by_size(m: Any, x: torch.Tensor) -> torch.Tensor:
    return F.interpolate(m.table, size=x.shape[2:], mode="nearest") + x


def test_the_hint_on_a_scale_factor(tmp_path: Path) -> None:
    def export(function: Any) -> ModelExport:
        net = images(lambda: Function(function, table=torch.randn(1, 2, 5, 5)), 2, (7, 8), (3, 11))
        sizes = [..., *net.sizes[1:]]
        return ModelExport(net.make().eval(), net.inputs(net.sizes[0]), dynamic_axes=net.axes, sizes=sizes)

    with pytest.raises(CaptureError, match="scale_factor of interpolate is computed from sizes") as caught:
        _ = export(_nearest).captured
    assert "size=(h, w), in place of scale_factor" in caught.value.hint
    export(_nearest_by_size).to(TractNNEF(NEWEST), tmp_path / "net.nnef.tar").assert_parity()


def test_the_hint_on_a_choice_by_values(tmp_path: Path) -> None:
    """What it advises is the net `long rotary positions`."""
    short, long = torch.rand(4), torch.rand(4)

    def chosen(_: Any, x: torch.Tensor) -> torch.Tensor:
        return x * (long if torch.arange(x.shape[1]).max() + x.max() > 16 else short)

    with pytest.raises(DataDependentError, match="depends on values in a tensor") as caught:
        _ = ModelExport(Function(chosen), torch.randn(2, 7, 4), dynamic_axes={"x": {1: "T"}}).captured
    assert "torch.where(condition, a, b) computes both branches" in caught.value.hint
