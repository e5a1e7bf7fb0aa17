"""Attention by functions of positions, and rotary positions that change beyond a length."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from conformance.cases.reported.case import ReportedNet, batch_and_time


class FlexAttention(nn.Module):
    """Self-attention by `flex_attention`: plain, with a change of the scores, or with a mask of blocks."""

    def __init__(self, form: str, width: int = 16, heads: int = 2) -> None:
        super().__init__()
        self.form, self.heads = form, heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.slope = nn.Parameter(torch.rand(heads))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        options: dict[str, Any] = {"scale": 0.3}
        if self.form == "scores":
            options = {"score_mod": self._falling}
        elif self.form == "blocks":
            near = lambda b, h, i, j: (i >= j) & (i - j < 4)  # noqa: E731 - as PyTorch's documentation writes it
            options = {"block_mask": create_block_mask(near, None, None, length, length, device="cpu")}
        return self.out(flex_attention(q, k, v, **options).transpose(1, 2).reshape(batch, length, width))  # type: ignore[union-attr,no-any-return]

    def _falling(self, score: Tensor, b: Any, h: Any, i: Any, j: Any) -> Tensor:
        return torch.where(i >= j, score - (i - j) * self.slope[h], -float("inf"))


class LongRope(nn.Module):
    """Rotary positions whose frequencies are others for texts longer than 16, chosen by both sides."""

    def __init__(self, width: int = 8, short: int = 16) -> None:
        super().__init__()
        self.short_length = short
        self.linear = nn.Linear(width, width)
        frequencies = 1.0 / 10000 ** (torch.arange(0, width, 2) / width)
        self.register_buffer("short", frequencies)
        self.register_buffer("long", frequencies / torch.tensor([1.0, 2.0, 4.0, 8.0]))

    def forward(self, x: Tensor) -> Tensor:
        places = torch.arange(x.shape[1])
        frequencies = torch.where(places.max() + 1 > self.short_length, self.long, self.short)
        angle = places[:, None] * frequencies
        angle = torch.cat([angle, angle], -1)
        q = self.linear(x)
        return q * angle.cos() + torch.cat([-q[..., 4:], q[..., :4]], -1) * angle.sin()


CASES: dict[str, ReportedNet] = {
    **{
        f"flex_attention: {form}": batch_and_time(lambda form=form: FlexAttention(form), 16)  # type: ignore[misc]
        for form in ("plain", "scores", "blocks")
    },
    "long rotary positions": batch_and_time(LongRope, 8),
}
