"""Nets whose weights are stored in another format than they are computed in: by kind of layer, and whole ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from t2n_core import StoredAs
from t2n_core.op.stored.scales import least_error, percentile

Axes = dict[str, dict[int, str]]


@dataclass(frozen=True, slots=True)
class WeightNet:
    """A net with inputs; both are made under a seed."""

    make: Callable[[], nn.Module]
    inputs: Callable[[], dict[str, Tensor]]
    axes: Axes | None = None


class Gathered(nn.Module):
    """Rows of an embedding, and a product of their mean."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(1500, 256)

    def forward(self, x: Tensor) -> Tensor:
        embeddings: Tensor = self.words(x)
        return embeddings - embeddings.mean(1, keepdim=True)


class Experts(nn.Module):
    """A mixture: each row is multiplied with the matrices of two experts, weighted by their scores."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(64, 6, bias=False)
        self.up, self.down = (nn.Parameter(torch.randn(6, *shape) / 8) for shape in ((96, 64), (64, 96)))

    def forward(self, x: Tensor) -> Tensor:
        scores, picks = self.gate(x).softmax(-1).topk(2)
        rows = x.repeat_interleave(2, 0)[..., None]
        inner = F.silu(torch.bmm(self.up[picks.flatten()], rows))
        expert_outputs = torch.bmm(self.down[picks.flatten()], inner)[..., 0]
        return (expert_outputs.unflatten(0, (-1, 2)) * scores[..., None]).sum(1)


class Tied(nn.Module):
    """A weight that an embedding and the last layer share."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.mid = nn.Embedding(300, 128), nn.Linear(128, 128)
        self.out = nn.Linear(128, 300, bias=False)
        nn.init.normal_(self.words.weight, std=0.1)
        self.out.weight = self.words.weight

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.out(torch.tanh(self.mid(self.words(x))))
        return output


class Residual(nn.Module):
    """A convolutional net as they are in use: norms after convolutions, one depthwise, a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.first = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(64)
        self.conv, self.second = nn.Conv2d(64, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64)
        self.depthwise, self.third = nn.Conv2d(64, 64, 3, padding=1, groups=64, bias=False), nn.BatchNorm2d(64)
        self.point, self.head = nn.Conv2d(64, 128, 1), nn.Linear(128, 10)
        for norm in (self.first, self.second, self.third):
            nn.init.normal_(norm.running_mean)
            for tensor in (norm.running_var, norm.weight):
                nn.init.uniform_(tensor, 0.5, 1.5)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.first(self.stem(x)))
        x = F.relu(self.second(self.conv(x)) + x)
        x = F.relu(self.point(self.third(self.depthwise(x))))
        output: Tensor = self.head(x.mean((2, 3)))
        return output


class KeysAndValues(nn.Module):
    """Keys and values from two slices of one projection matrix, whose first slice, for queries, is not read."""

    def __init__(self) -> None:
        super().__init__()
        self.projection = nn.Linear(128, 3 * 128)

    def forward(self, x: Tensor) -> Tensor:
        weights, biases = self.projection.weight.split(128), self.projection.bias.split(128)
        keys, values = (F.linear(x, weight, bias) for weight, bias in zip(weights[1:], biases[1:], strict=True))
        return torch.tanh(keys) * values


class Decoder(nn.Module):
    """A layer of attention and one of products, over embedded tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(400, 128)
        self.layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)

    def forward(self, tokens: Tensor) -> Tensor:
        output: Tensor = self.layer(self.words(tokens))
        return output


def _x(*shape: int) -> Callable[[], dict[str, Tensor]]:
    return lambda: {"x": torch.randn(shape)}


def _tokens(name: str, count: int, *shape: int) -> Callable[[], dict[str, Tensor]]:
    return lambda: {name: torch.randint(0, count, shape)}


def _net(make: Callable[[], nn.Module], inputs: Callable[[], dict[str, Tensor]], **free: int) -> WeightNet:
    (name,) = inputs()
    return WeightNet(make, inputs, {name: {axis: symbol for symbol, axis in free.items()}} if free else None)


def _net_of_one_layer(make: Callable[..., nn.Module], *args: Any, **words: Any) -> Callable[[], nn.Module]:
    """Return a net of one layer whose input is called `x`."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = make(*args, **words)

        def forward(self, x: Tensor) -> Tensor:
            output = self.layer(x)
            return output[0] if isinstance(output, tuple) else output

    return Net


NETS: dict[str, WeightNet] = {
    "linear": _net(_net_of_one_layer(nn.Linear, 512, 512), _x(16, 512), B=0),
    "one row": _net(_net_of_one_layer(nn.Linear, 1024, 1024), _x(1, 1024)),
    "conv1d": _net(_net_of_one_layer(nn.Conv1d, 64, 96, 5, stride=2, dilation=2), _x(2, 64, 50), B=0, T=2),
    "conv2d": _net(_net_of_one_layer(nn.Conv2d, 64, 64, 3, padding=1), _x(1, 64, 16, 16), B=0),
    "conv2d 1x1": _net(_net_of_one_layer(nn.Conv2d, 256, 256, 1), _x(1, 256, 12, 12)),
    "conv2d in groups": _net(_net_of_one_layer(nn.Conv2d, 64, 128, 3, groups=2, padding=1), _x(1, 64, 14, 14)),
    "conv2d of odd rows": _net(_net_of_one_layer(nn.Conv2d, 3, 64, 7, stride=2, padding=3), _x(1, 3, 32, 32)),
    "conv3d": _net(_net_of_one_layer(nn.Conv3d, 32, 32, 3), _x(1, 32, 6, 7, 8)),
    "depthwise": _net(_net_of_one_layer(nn.Conv2d, 128, 128, (4, 8), groups=128, padding=3), _x(1, 128, 14, 14)),
    "transposed": _net(_net_of_one_layer(nn.ConvTranspose2d, 64, 64, 2, stride=2), _x(1, 64, 12, 12)),
    "embedding": _net(Gathered, _tokens("x", 1500, 2, 16), B=0, T=1),
    "experts": _net(Experts, _x(5, 64), N=0),
    "tied": _net(Tied, _tokens("x", 300, 2, 9), T=1),
    "lstm": _net(_net_of_one_layer(nn.LSTM, 64, 96, batch_first=True), _x(2, 12, 64), T=1),
    "gru": _net(_net_of_one_layer(nn.GRU, 64, 96, bidirectional=True), _x(12, 2, 64), T=0),
    "keys and values": _net(KeysAndValues, _x(3, 128), B=0),
    "residual": _net(Residual, _x(1, 3, 48, 48), B=0),
    "decoder": _net(Decoder, _tokens("tokens", 400, 1, 24), T=1),
}


def by_layer(name: str, weight: Tensor) -> StoredAs | str | None:
    """A user's function: float16 for what is small, bytes with scales of the least error for the rest."""
    if name.endswith("head.weight"):
        return None
    return "float16" if weight.numel() < 5000 else StoredAs("int8", scales=least_error)


FORMATS: dict[str, Any] = {"float16": "float16", "int8": "int8", "q4_0": "q4_0"}
CHOICES: dict[str, Any] = {
    **FORMATS,
    "by function": by_layer,
    "by pattern": {"layer.self_attn": "float16", "words": StoredAs("q4_0", scales=percentile(0.99)), "*": "int8"},
}
