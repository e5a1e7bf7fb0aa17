"""Masks of attention that are known at export, and the order of its axes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from t2n_core import ModelExport, TractNNEF
from tests.releases import NEWEST


class Masked(nn.Module):
    def forward(self, query: torch.Tensor) -> torch.Tensor:
        mask = torch.full((4, 4), float("-inf"), dtype=query.dtype).triu(1)
        return nn.functional.scaled_dot_product_attention(query, query, query, attn_mask=mask)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_what_a_mask_forbids_is_the_lowest_number(dtype: torch.dtype) -> None:
    """The lowest of float32, also for a mask of float16: minus infinity would come of a cast to it."""
    graph = ModelExport(Masked(), (torch.randn(1, 2, 4, 8).to(dtype),)).lower(TractNNEF(NEWEST, check_io=False))
    masks = [value.weight.array for _, value in graph.variables() if value.shape[-2:] == (4, 4)]
    assert [mask.min() for mask in masks] == [np.finfo(np.float32).min]


class Split(nn.Module):
    """Attention of a tensor that is split into two heads."""

    def forward(self, query: torch.Tensor) -> torch.Tensor:
        heads = query.view(*query.shape[:2], 2, 4).transpose(1, 2)
        return nn.functional.scaled_dot_product_attention(heads, heads, heads)


@pytest.mark.parametrize(("batch", "scores"), [(3, (2, 3, 5, 5)), (1, (1, 2, 5, 5))])
def test_heads_come_before_the_batch(batch: int, scores: tuple[int, ...]) -> None:
    """Unless that would change nothing, as with a batch of 1."""
    graph = ModelExport(Split(), (torch.randn(batch, 5, 8),)).lower(TractNNEF(NEWEST, check_io=False))
    assert [operation.outputs[0].shape for operation in graph.operations if operation.name == "softmax"] == [scores]
