"""Nets that tests of several files export."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class Attention(nn.Module):
    """Attention of one head, whose product of queries, keys and values is one layer."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        return functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape[0], -1)
