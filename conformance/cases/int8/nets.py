"""Whole nets of torch.ao: static grids, grids found at run time, graphs of FX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.ao.quantization as ao
from torch import Tensor, nn
from torch.ao.nn.quantized import FloatFunctional
from torch.ao.quantization import quantize_fx as fx

from conformance.cases.int8.case import Inputs, Int8Net, of_layer


class Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.a, self.b = (nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))
        self.relu, self.sum = nn.ReLU(), FloatFunctional()

    def forward(self, x: Tensor) -> Any:
        return self.sum.add_relu(self.b(self.relu(self.a(x))), x)


class SmallCnn(nn.Module):
    """A stem, a residual block, a depthwise pair, ReLU6, pools and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), Residual(16), nn.MaxPool2d(2))
        self.pair = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1, groups=16), nn.Conv2d(16, 32, 1), nn.ReLU6())
        self.pool, self.last = nn.AdaptiveAvgPool2d(1), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Any:
        return self.last(torch.flatten(self.pool(self.pair(self.stem(x))), 1))


class Functions(nn.Module):
    """Functions where FX finds the layers: relu, sums, joins, slices, a linear function."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.norm, self.b = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 3, padding=1)
        self.weight, self.bias = nn.Parameter(torch.randn(5, 8)), nn.Parameter(torch.randn(5))

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.norm(self.a(x)))
        x = x + self.b(x)
        x = torch.cat([x, x * 2.0], 1)[:, :8]
        return nn.functional.linear(x.mean([2, 3]), self.weight, self.bias)


class OfTokens(nn.Module):
    """An embedding of 8 bits, and bags of 8 and 4 bits."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.bag = nn.Embedding(50, 16), nn.EmbeddingBag(50, 16)
        self.small = nn.EmbeddingBag(50, 16, mode="sum")

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.words(tokens), self.bag(tokens), self.small(tokens)


class Cells(nn.Module):
    """Cells that the model calls step by step."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.gru, self.rnn = nn.LSTMCell(6, 8), nn.GRUCell(8, 8), nn.RNNCell(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        h = c = g = r = torch.zeros(x.shape[0], 8)
        for step in range(x.shape[1]):
            h, c = self.lstm(x[:, step], (h, c))
            g = self.gru(h, g)
            r = self.rnn(g, r)
        return torch.cat([h, c, g, r], 1)


class First(nn.Module):
    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Any:
        out, state = self.net(x)
        return out, state


def _by_fx() -> tuple[Any, Inputs]:
    model, x = Functions().eval(), torch.randn(2, 3, 10, 10)
    prepared = fx.prepare_fx(model, ao.get_default_qconfig_mapping(torch.backends.quantized.engine), (x,))
    with torch.no_grad():
        for _ in range(4):
            prepared(torch.randn(2, 3, 10, 10))
    return fx.convert_fx(prepared), {"x": x}


def _dynamic(make: Callable[[], nn.Module], *shape: int) -> Callable[[], tuple[Any, Inputs]]:
    kinds = {nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.GRUCell, nn.RNNCell}
    return lambda: (ao.quantize_dynamic(make().eval(), kinds), {"x": torch.randn(*shape)})


def _embeddings() -> tuple[Any, Inputs]:
    model = OfTokens().eval()
    model.words.qconfig = model.bag.qconfig = ao.float_qparams_weight_only_qconfig  # type: ignore[assignment]
    model.small.qconfig = ao.float_qparams_weight_only_qconfig_4bit  # type: ignore[assignment]
    return ao.convert(ao.prepare(model)), {"tokens": torch.randint(0, 50, (3, 7))}


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))

    def forward(self, x: Tensor) -> Any:
        return self.layers(x)


BATCH = {"x": {0: "B"}}
CASES: dict[str, Int8Net] = {
    "mlp": of_layer(
        lambda: nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(128, 128), nn.ReLU())], nn.Linear(128, 10)),
        (16, 128),
    ),
    "small_cnn": of_layer(SmallCnn, (2, 3, 32, 32)),
    "fx": Int8Net(_by_fx, axes=BATCH),
    **{f"dynamic-{e}": Int8Net(_dynamic(Mlp, 8, 64), e, BATCH, "approximate") for e in ("x86", "fbgemm", "qnnpack")},
    "dynamic-lstm": Int8Net(
        _dynamic(lambda: First(nn.LSTM(16, 32, batch_first=True)), 2, 6, 16), axes=BATCH, level="approximate"
    ),
    "dynamic-lstm-layers": Int8Net(
        _dynamic(lambda: First(nn.LSTM(8, 12, num_layers=2, bidirectional=True)), 5, 3, 8), level="approximate"
    ),
    "dynamic-gru": Int8Net(
        _dynamic(lambda: First(nn.GRU(8, 12, bidirectional=True, batch_first=True)), 3, 5, 8), level="approximate"
    ),
    "dynamic-cells": Int8Net(_dynamic(Cells, 3, 4, 6), axes=BATCH, level="approximate"),
    "embeddings": Int8Net(_embeddings, axes={"tokens": {0: "B", 1: "T"}}, level="approximate"),
}
