"""A streaming Conformer: chunks with left context, whose caches are inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from conformance.cases.several_archives.parts import zeros
from t2n_core.program import Part, Statement, let, run, while_

CHUNK = 6
"""Frames of a chunk."""
LEFT = 8
"""Frames of left context that attention sees besides the chunk."""
WIDTH, HEADS, KERNEL = 12, 3, 5


class Block(nn.Module):
    """Half a feed-forward net, attention with left context, a causal convolution, and the other half."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(5))
        self.before, self.after = _feed_forward(), _feed_forward()
        self.qkv, self.mixed = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.gates, self.pointwise = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.depthwise = nn.Conv1d(WIDTH, WIDTH, KERNEL, groups=WIDTH)

    def forward(self, x: Any, context: Any, filled: Any, past: Any) -> Any:
        """Take a chunk, the left context `[1, LEFT, width]`, how much of it is filled, and the convolution's past."""
        x = x + 0.5 * self.before(self.norms[0](x))
        normed = self.norms[1](x)
        seen = torch.cat([context, normed], 1)
        q, _, _ = self.qkv(normed).chunk(3, -1)
        _, k, v = self.qkv(seen).chunk(3, -1)
        q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in (q, k, v))
        places = torch.arange(LEFT + CHUNK)
        mask = (places >= LEFT - filled)[None, None, None]
        attended = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.mixed(attended.transpose(1, 2).flatten(2))
        gated = nn.functional.glu(self.gates(self.norms[2](x)), -1)
        frames = torch.cat([past, gated], 1)
        x = x + self.pointwise(nn.functional.silu(self.depthwise(frames.transpose(1, 2)).transpose(1, 2)))
        x = x + 0.5 * self.after(self.norms[3](x))
        return self.norms[4](x), seen[:, -LEFT:], frames[:, 1 - KERNEL :]


class ChunkedEncoder(nn.Module):
    """Two blocks between projections, one chunk a call."""

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.features, self.enter, self.leave = features, nn.Linear(features, WIDTH), nn.Linear(WIDTH, outputs)
        self.blocks = nn.ModuleList(Block() for _ in range(2))

    def forward(self, chunk: Any, filled: Any, context0: Any, past0: Any, context1: Any, past1: Any) -> Any:
        """Return the encoded chunk, and the caches of the next one."""
        x, following = self.enter(chunk), []
        for block, context, past in zip(self.blocks, (context0, context1), (past0, past1), strict=True):
            x, *block_caches = block(x, context, filled, past)
            following += block_caches
        return self.leave(x), torch.clamp(filled + CHUNK, max=LEFT), *following

    @staticmethod
    def initial() -> list[torch.Tensor]:
        """Return the caches before the first chunk."""
        block_caches = [torch.zeros(1, LEFT, WIDTH), torch.zeros(1, KERNEL - 1, WIDTH)]
        return [torch.zeros(1, dtype=torch.int64), *block_caches, *block_caches]

    def part(self) -> Part:
        """Return the archive of one chunk."""
        block_caches = [torch.randn(1, LEFT, WIDTH), torch.randn(1, KERNEL - 1, WIDTH)] * 2
        caches = dict(zip(CACHES, [torch.tensor([4]), *block_caches], strict=True))
        options = {"output_names": ["encoded", *(f"next_{name}" for name in CACHES)]}
        return Part(self, {"chunk": torch.randn(1, CHUNK, self.features), **caches}, options)


CACHES = ("filled", "context0", "past0", "context1", "past1")


def _feed_forward() -> nn.Module:
    return nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.SiLU(), nn.Linear(2 * WIDTH, WIDTH))


def chunk_of(encoder: ChunkedEncoder) -> Statement:
    """Return the statement that encodes the chunk at `at` as `frames`."""
    inputs = {"chunk": ["slice", "features", 1, "at", ["add", "at", CHUNK]], **{name: name for name in CACHES}}
    return run("encoder", inputs, {"encoded": "frames", **{f"next_{name}": name for name in CACHES}})


def chunks(encoder: ChunkedEncoder, body: Sequence[Statement]) -> list[Statement]:
    """Return a loop over the chunks of `features`."""
    initial = zip(CACHES, encoder.initial(), strict=True)
    caches = {name: zeros(*value.shape, dtype=str(value.dtype).removeprefix("torch.")) for name, value in initial}
    return [let(**caches, at=0), while_(["less", "at", ["size", "features", 1]], *body, let(at=["add", "at", CHUNK]))]
