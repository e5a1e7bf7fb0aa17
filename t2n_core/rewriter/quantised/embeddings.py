"""Embeddings whose rows are integers of 8 or 4 bits, each row with a scale and a lowest value."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from t2n_core.errors import CaptureError
from t2n_core.rewriter.quantised.packed import PackedWeight

_MODES = ("sum", "mean", "max")


def embedding(weight: PackedWeight, indices: Tensor, pruned_weights: bool = False) -> Tensor:
    """Return rows as floats; they are picked before they are dequantised."""
    numbers = F.embedding(indices, weight.stored).to(torch.float32)
    return numbers * F.embedding(indices, weight.scales) + F.embedding(indices, weight.lowest)


def embedding_bag(
    weight: PackedWeight, indices: Tensor, offsets: Tensor | None = None, scale_grad_by_freq: bool = False,
    mode: int = 0, pruned_weights: bool = False, per_sample_weights: Tensor | None = None,
    compressed_indices_mapping: Any = None, include_last_offset: bool = False,
) -> Tensor:  # fmt: skip
    """Return sums of rows, one for each row of `indices` [bags, entries]."""
    if offsets is not None or indices.dim() != 2 or pruned_weights:
        raise CaptureError(
            "an embedding bag of 8 bits has bags of different lengths here",
            hint="pass the indices as [bags, entries], without offsets",
        )
    rows = embedding(weight, indices)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    if _MODES[mode] == "max":
        return rows.amax(1)
    return rows.sum(1) if _MODES[mode] == "sum" else rows.mean(1)
