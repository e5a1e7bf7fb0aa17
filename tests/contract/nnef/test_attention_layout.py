"""The order of axes between the products of attention."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.engine.protocol import OPERATORS
from tests.releases import LINES, NEWEST

LENGTH = 7
ALLOWED = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()
MASKS: dict[str, dict[str, Any]] = {
    "none": {},
    "causal": {"is_causal": True},
    "conditions": {"attn_mask": ALLOWED},
    "a bias for each head": {"attn_mask": torch.linspace(-2, 2, 3 * LENGTH**2).reshape(3, LENGTH, LENGTH)},
    "a bias for each sequence": {"attn_mask": torch.linspace(-2, 2, 2 * LENGTH**2).reshape(2, 1, LENGTH, LENGTH)},
    "a row of none": {"attn_mask": ALLOWED.tril(-1)},
}


class Layer(nn.Module):
    """Attention with three heads between linear layers."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options
        self.inner = nn.ModuleList(nn.Linear(12, 12) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        heads = [layer(x).view(*x.shape[:2], 3, 4).transpose(1, 2) for layer in self.inner[:3]]
        mixed = F.scaled_dot_product_attention(*heads, **self.options)
        return self.inner[3](mixed.transpose(1, 2).reshape(x.shape))


class Computed(Layer):
    """Masks that are computed: from positions, and from an input, for each sequence."""

    def forward(self, x: Tensor) -> Tensor:
        at = torch.arange(x.shape[1])
        self.options = {"attn_mask": (at <= at[:, None]) & (x[:, None, None, :, 0] > 0)}
        first = super().forward(x)
        self.options = {"attn_mask": torch.where(at <= at[:, None], 0.0, -torch.inf) - x[:, None, None, :, 1].abs()}
        second = super().forward(x)
        self.options = {"attn_mask": (at <= at[:, None]).expand(x.shape[0], 1, -1, -1)}
        return torch.stack((first, second, super().forward(x)))


@pytest.mark.parametrize("version", LINES)
@pytest.mark.parametrize("mask", MASKS)
def test_masks_keep_their_axes(mask: str, version: str, tmp_path: Path) -> None:
    model, x = Layer(**MASKS[mask]).eval(), torch.randn(2, LENGTH, 12)
    ModelExport(model, (x,)).to(TractNNEF(version), tmp_path / "fixed.nnef.tar").assert_parity("approximate")


@pytest.mark.parametrize("version", LINES)
def test_masks_that_are_computed(version: str, tmp_path: Path) -> None:
    target = TractNNEF(version, dynamic_axes={"x": {0: "B", 1: "T"}})
    export = ModelExport(Computed().eval(), (torch.randn(2, LENGTH, 12),))
    export.to(target, tmp_path / "free.nnef.tar").assert_parity("approximate")


class Fused(nn.Module):
    """The same in one operator."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.MultiheadAttention(12, 3)

    def forward(self, x: Tensor) -> Tensor:
        inner, outer = self.layer, self.layer.out_proj
        weights = (inner.in_proj_weight, inner.in_proj_bias, outer.weight, outer.bias)
        mixed: Tensor = torch.ops.aten._native_multi_head_attention(x, x, x, 12, 3, *weights, None, False)[0]
        return mixed


@pytest.mark.parametrize("axes", [{}, {"x": {0: "B", 1: "T"}}], ids=["fixed", "free"])
@pytest.mark.parametrize("kind", [Layer, Fused])
def test_nothing_is_copied_between_the_products(kind: type[nn.Module], axes: dict[str, Any], tmp_path: Path) -> None:
    """The engine moves no axis, as it would where it merges the batch with the heads."""
    model, x = kind().eval(), torch.randn(2, LENGTH, 12)
    target = TractNNEF(NEWEST, dynamic_axes=axes)
    outcome = ModelExport(model, (x,)).to(target, tmp_path / "layer.nnef.tar").assert_parity("approximate")
    assert "MoveAxis" not in outcome.facts[OPERATORS]
