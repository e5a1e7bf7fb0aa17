"""Nets that tests of several files export."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional


def net_of(forward: Callable[..., Any], **parts: Any) -> nn.Module:
    """Return a net whose `forward` is a function of itself and its inputs, with these layers, buffers and values.

    Its frame is called `forward` too, since that is where errors look for the line of a model.
    """
    forward.__code__ = forward.__code__.replace(co_name="forward")
    made: nn.Module = type("Net", (nn.Module,), {"forward": forward})()
    for name, part in parts.items():
        if type(part) is torch.Tensor:
            made.register_buffer(name, part)
        else:
            setattr(made, name, part)
    return made


class OfFunction(nn.Module):
    """A net of one input that computes a function of it."""

    def __init__(self, function: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


class Attention(nn.Module):
    """Attention of one head, whose product of queries, keys and values is one layer."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        return functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape[0], -1)


class TinyDecoder(nn.Module):
    """A decoder of one layer and one head.

    It takes tokens and a cache `[B, 1, P, width]` twice, and returns the logits of the last token and the longer cache.

    With a `window` a token sees so many keys, its own included.
    """

    def __init__(self, vocabulary: int = 23, width: int = 8, window: int = 1000) -> None:
        super().__init__()
        self.window = window
        self.embedding = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(64, width)
        self.qkv = nn.Linear(width, 3 * width)
        self.head = nn.Linear(width, vocabulary)

    def forward(
        self, tokens: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        past, size = keys.shape[2], tokens.shape[1]
        places = torch.arange(past, past + size)
        x = self.embedding(tokens) + self.positions(places)
        q, k, v = (part.unsqueeze(1) for part in self.qkv(x).chunk(3, -1))
        keys, values = torch.cat([keys, k], 2), torch.cat([values, v], 2)
        at = torch.arange(past + size)
        seen = (at <= places[:, None]) & (at > places[:, None] - self.window)
        mixed = functional.scaled_dot_product_attention(q, keys, values, attn_mask=seen)
        return self.head((x + mixed.squeeze(1))[:, -1:]), keys, values
