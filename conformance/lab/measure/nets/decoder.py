"""A language model with its cache as inputs and outputs: grouped heads, rotary positions, gated nets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from t2n_core.torch_graph.constraints.declared_axes import SizeFrom


@dataclass(frozen=True, slots=True)
class Size:
    """Sizes of a decoder; these are of 124.7 million parameters."""

    layers: int = 12
    heads: int = 12
    shared: int = 4
    """Heads of keys and values."""
    width: int = 64
    """Of one head."""
    inner: int = 2048
    words: int = 32000

    @property
    def hidden(self) -> int:
        return self.heads * self.width


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, other = x.chunk(2, -1)
    return x * cos + torch.cat([-other, first], -1) * sin


class Layer(nn.Module):
    """Attention to the past and the new tokens, and a gated net, each after a norm and with a residual."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.size, shared = size, size.shared * size.width
        self.before, self.between = nn.RMSNorm(size.hidden, eps=1e-6), nn.RMSNorm(size.hidden, eps=1e-6)
        self.query, self.out = (nn.Linear(size.hidden, size.hidden, bias=False) for _ in range(2))
        self.key, self.value = (nn.Linear(size.hidden, shared, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(size.hidden, size.inner, bias=False) for _ in range(2))
        self.down = nn.Linear(size.inner, size.hidden, bias=False)

    def forward(
        self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor, cos: Tensor, sin: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        normed = self.before(x)
        query, key, value = (
            part(normed).view(*x.shape[:2], -1, self.size.width).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        keys = torch.cat([keys, _rotate(key, cos, sin)], 2)
        values = torch.cat([values, value], 2)
        mixed = functional.scaled_dot_product_attention(
            _rotate(query, cos, sin), keys, values, mask, enable_gqa=self.size.heads != self.size.shared
        )
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        normed = self.between(x)
        return x + self.down(functional.silu(self.gate(normed)) * self.up(normed)), keys, values


class Decoder(nn.Module):
    """Tokens [1, S] and the keys and values of each layer [1, heads, P, width] -> logits, and the longer caches."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.size = size
        self.words = nn.Embedding(size.words, size.hidden)
        self.layers = nn.ModuleList(Layer(size) for _ in range(size.layers))
        self.last, self.head = nn.RMSNorm(size.hidden, eps=1e-6), nn.Linear(size.hidden, size.words, bias=False)
        self.register_buffer("speeds", 10000.0 ** -(torch.arange(0, size.width, 2) / size.width))

    def forward(self, tokens: Tensor, *caches: Tensor) -> tuple[Tensor, ...]:
        past, length = caches[0].shape[2], tokens.shape[1]
        rows = torch.arange(length) + past
        mask = torch.arange(past + length)[None, :] <= rows[:, None]
        speeds: Any = self.speeds
        angles = (rows[:, None] * speeds.float()).repeat(1, 2)
        x = self.words(tokens)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        longer: list[Tensor] = []
        for index, layer in enumerate(self.layers):
            x, keys, values = layer(x, caches[2 * index], caches[2 * index + 1], mask[None, None], cos, sin)
            longer += [keys, values]
        return (self.head(self.last(x)), *longer)

    def empty(self) -> list[Tensor]:
        """Return the caches before the first token."""
        shape = (1, self.size.shared, 0, self.size.width)
        return [torch.zeros(shape, dtype=self.head.weight.dtype) for _ in range(2 * self.size.layers)]


class Products(nn.Module):
    """The linear layers of a decoder and nothing else: tokens [1, S] -> values of the shape of the logits."""

    def __init__(self, model: Decoder) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor) -> Tensor:
        x: Tensor = self.model.words(tokens)
        for layer in self.model.layers:
            mixed = layer.out(layer.query(x))
            few = layer.key(x) + layer.value(x)
            x = layer.down(layer.gate(mixed) + layer.up(mixed)) + few.mean(-1, keepdim=True)
        logits: Tensor = self.model.head(x)
        return logits


def build(size: Size, dtype: torch.dtype = torch.float32) -> Decoder:
    torch.manual_seed(0)
    return Decoder(size).eval().to(dtype)


def example(model: Decoder, tokens: int = 3, past: int = 5) -> tuple[tuple[Tensor, ...], dict[str, Any]]:
    """Return inputs, and the options of an export for any number of tokens after a past of any length, 0 included."""
    size = model.size
    shape = (1, size.shared, past, size.width)
    caches = [torch.randn(shape, dtype=model.head.weight.dtype) for _ in range(2 * size.layers)]
    names = [f"{kind}_{index}" for index in range(size.layers) for kind in ("key", "value")]
    options = {
        "input_names": ["tokens", *(f"in_{name}" for name in names)],
        "output_names": ["logits", *(f"out_{name}" for name in names)],
        "dynamic_axes": {"tokens": {1: "S"}, **{f"in_{name}": {2: SizeFrom("P")} for name in names}},
    }
    return (torch.randint(0, size.words, (1, tokens)), *caches), options
