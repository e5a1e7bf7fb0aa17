"""flex_attention with scores and masks that are functions of places, in the engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.attention import flex_attention as module
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from t2n_core import ModelExport, TractNNEF
from t2n_core.errors import CaptureError
from tests.releases import NEWEST

WINDOW = create_block_mask(lambda b, h, i, j: (i >= j) & (i - j < 3), None, None, 7, 7, device="cpu")


class Attention(nn.Module):
    def __init__(self, form: str) -> None:
        super().__init__()
        self.form = form
        self.heads = nn.Linear(16, 48)
        self.slope = nn.Parameter(torch.rand(2))

    def forward(self, x: torch.Tensor) -> Any:
        batch, length, _ = x.shape
        q, k, v = self.heads(x).view(batch, length, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
        match self.form:
            case "plain":
                return flex_attention(q, k, v, scale=0.3)
            case "score":
                return flex_attention(q, k, v, self._falling)
            case "block mask":
                mask = create_block_mask(lambda b, h, i, j: i - j < 4, batch, None, length, length, device="cpu")
                return module.flex_attention(q, k[:, :1], v[:, :1], block_mask=mask, enable_gqa=True)
            case "score and mask of the constructor":
                return flex_attention(q, k, v, lambda s, b, h, i, j: s + b / 7, block_mask=WINDOW)
            case "no key":
                mask = create_block_mask(
                    lambda b, h, i, j: (j < i) & (i != 2), None, None, length, length, device="cpu"
                )
                return flex_attention(q, k, v, lambda s, b, h, i, j: s.tanh(), mask)
            case _:
                return flex_attention(q, k, v, return_lse=True)

    def _falling(self, score: torch.Tensor, b: Any, h: Any, i: Any, j: Any) -> torch.Tensor:
        return torch.where(i >= j, score - (i - j) * self.slope[h], -float("inf"))


def exported(form: str, folder: Path, **options: Any) -> Any:
    torch.manual_seed(0)
    return ModelExport(Attention(form).eval(), torch.randn(2, 7, 16), **options).to(TractNNEF(NEWEST), folder / "net")


@pytest.mark.parametrize("form", ["plain", "score", "block mask", "no key"])
def test_any_length(form: str, tmp_path: Path, resolved_engine: Any) -> None:
    resolved_engine(NEWEST)
    code = flex_attention.__code__
    result = exported(form, tmp_path, dynamic_axes={"x": {0: "B", 1: "T"}})
    assert str(result.range) == "B >= 1, T >= 1"
    assert flex_attention.__code__ is code


def test_a_mask_that_the_constructor_made(tmp_path: Path, resolved_engine: Any) -> None:
    resolved_engine(NEWEST)
    exported("score and mask of the constructor", tmp_path)


def test_sums_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="returns the logarithm of its sums"):
        exported("sums", tmp_path)
