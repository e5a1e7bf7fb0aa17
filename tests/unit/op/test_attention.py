"""Masks of attention that are known at export."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from t2n_core import ModelExport, TractNNEF


class Masked(nn.Module):
    def forward(self, query: torch.Tensor) -> torch.Tensor:
        mask = torch.full((4, 4), float("-inf"), dtype=query.dtype).triu(1)
        return nn.functional.scaled_dot_product_attention(query, query, query, attn_mask=mask)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_what_a_mask_forbids_is_the_lowest_number(dtype: torch.dtype) -> None:
    """The lowest of float32, also for a mask of float16: minus infinity would come of a cast to it."""
    graph = ModelExport(Masked(), (torch.randn(1, 2, 4, 8).to(dtype),)).lower(TractNNEF("0.23.9", check_io=False))
    masks = [value.weight.array for _, value in graph.variables() if value.shape[-2:] == (4, 4)]
    assert [mask.min() for mask in masks] == [np.finfo(np.float32).min]
