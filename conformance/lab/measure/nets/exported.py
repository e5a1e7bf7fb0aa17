"""Nets whose export is timed. Read by our own environment and by the peer's, so it imports nothing but torch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

CHAIN_LENGTHS = (50, 100, 200, 400)
WIDTH = 16


def chain(length: int) -> tuple[nn.Module, torch.Tensor]:
    """`length` times Linear and ReLU: the time of an export against the number of its nodes."""
    torch.manual_seed(0)
    layers = [layer for _ in range(length) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    return nn.Sequential(*layers).eval(), torch.randn(1, WIDTH)


class Speech(nn.Module):
    """Spectrogram frames to log-probabilities: strided convolutions, a stack of bidirectional GRUs, linear."""

    def __init__(self, bands: int = 40, width: int = 128, labels: int = 29) -> None:
        super().__init__()
        self.front = nn.Sequential(
            nn.Conv1d(bands, width, 5, 2, 2), nn.BatchNorm1d(width), nn.ReLU(), nn.Conv1d(width, width, 5, 2, 2)
        )
        self.rnn = nn.GRU(width, width, 3, bidirectional=True, batch_first=True)
        self.norm, self.out = nn.LayerNorm(2 * width), nn.Linear(2 * width, labels)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        frames = self.front(features.transpose(1, 2)).transpose(1, 2)
        return self.out(self.norm(self.rnn(frames)[0])).log_softmax(-1)


class Inverted(nn.Module):
    """The block of MobileNet 2: widened, depthwise, narrowed, with a way around it."""

    def __init__(self, width: int, grown: int) -> None:
        super().__init__()
        inner = width * grown
        self.layers = nn.Sequential(
            nn.Conv2d(width, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU6(),
            nn.Conv2d(inner, inner, 3, 1, 1, groups=inner, bias=False), nn.BatchNorm2d(inner), nn.ReLU6(),
            nn.Conv2d(inner, width, 1, bias=False), nn.BatchNorm2d(width),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x)


def convolutions() -> tuple[nn.Module, torch.Tensor]:
    layers = [m for _ in range(50) for m in (nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU())]
    return nn.Sequential(*layers), torch.randn(1, 64, 16, 16)


def transformer() -> tuple[nn.Module, torch.Tensor]:
    layer = nn.TransformerEncoderLayer(256, 4, 1024, activation="gelu", batch_first=True, norm_first=True)
    return nn.TransformerEncoder(layer, 12, enable_nested_tensor=False), torch.randn(1, 50, 256)


def mobile() -> tuple[nn.Module, torch.Tensor]:
    blocks = [Inverted(32, 6) for _ in range(16)]
    net = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 100))
    return net, torch.randn(1, 3, 64, 64)


EXPORTED: dict[str, Callable[[], tuple[nn.Module, torch.Tensor]]] = {
    "50 x (conv, norm, relu)": convolutions,
    "transformer, 12 layers of 256": transformer,
    "400 x (linear, relu)": lambda: chain(400),
    "LSTM, 2 layers, bidirectional": lambda: (nn.LSTM(64, 64, 2, bidirectional=True), torch.randn(100, 1, 64)),
    "speech encoder": lambda: (Speech(), torch.randn(1, 100, 40)),
    "mobile vision net": mobile,
}
"""Whose export is timed against the capture alone."""


def build(name: str) -> tuple[nn.Module, torch.Tensor]:
    """Return the net of this name and its input, with the same weights each time."""
    torch.manual_seed(0)
    model, x = EXPORTED[name]()
    return model.eval(), x
