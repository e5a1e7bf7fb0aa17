"""A result holds what it was made from: exports of the same model for other targets change nothing in it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF, rewriter

OLD, NEW = "0.21.19", "0.23.9"


class Crop(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[:, :5].sum(1)


@rewriter.method(Crop, "forward", target="tract", versions="<0.22")
def masked(ctx: object, self: Crop, x: Tensor) -> Tensor:
    """Return the same, of a mask: a capture of its own, for old releases."""
    return torch.where((torch.arange(x.shape[1]) < 5)[:, None], x, 0.0).sum(1)


class Branch(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2.0 if x.shape[1] > 5 else x * 3.0


@rewriter.method(Branch, "forward", target="tract", versions="<0.22")
def no_branch(ctx: object, self: Branch, x: Tensor) -> Tensor:
    return x * 2.0


def sizes_checked(order: list[str], folder: Path) -> dict[str, list[int]]:
    export = ModelExport(Crop().eval(), {"x": torch.randn(2, 7, 3)}, dynamic_axes={"x": {1: "T"}}, rewriters=[masked])
    found = {}
    for version in order:
        outcome = export.to(TractNNEF(version), folder / f"{version}.tar").check_parity()
        assert outcome.passed, outcome.describe()
        found[version] = [sizes["T"] for sizes in outcome.sizes]
    return found


def test_the_order_of_targets_does_not_matter(tmp_path: Path) -> None:
    forwards, backwards = sizes_checked([OLD, NEW], tmp_path), sizes_checked([NEW, OLD], tmp_path)
    assert forwards == backwards
    assert sizes_checked([NEW], tmp_path)[NEW] == forwards[NEW]


@pytest.mark.filterwarnings("ignore:the archive holds only")
def test_a_result_keeps_its_own_capture(tmp_path: Path) -> None:
    export = ModelExport(Branch().eval(), {"x": torch.randn(2, 7)}, dynamic_axes={"x": {1: "T"}}, rewriters=[no_branch])
    new = export.to(TractNNEF(NEW), tmp_path / "new.tar")
    before = new.captured, [sample.sizes for sample in new.samples]
    old = export.to(TractNNEF(OLD), tmp_path / "old.tar")
    assert (new.captured, [sample.sizes for sample in new.samples]) == before
    assert old.captured is not new.captured
    assert str(new.range) == "T >= 6"
    assert str(old.range) == "T >= 1"
