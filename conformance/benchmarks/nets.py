"""The nets that are measured. Read by our own environment and by the peer's, so it imports nothing but torch."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
from torch import nn

CHAIN_LENGTHS = (50, 100, 200, 400)
WIDTH = 16
STEPS = 100


def chain(length: int) -> tuple[nn.Module, torch.Tensor]:
    """`length` times Linear and ReLU: the time of an export against the number of its nodes."""
    torch.manual_seed(0)
    layers = [layer for _ in range(length) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    return nn.Sequential(*layers).eval(), torch.randn(1, WIDTH)


@dataclass(frozen=True, slots=True)
class RecurrentNet:
    """One LSTM or GRU over 100 steps of batch 1, as wide inside as its input."""

    kind: str
    hidden: int
    layers: int
    bidirectional: bool

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.hidden}-l{self.layers}-{'bi' if self.bidirectional else 'uni'}"

    @property
    def outputs(self) -> list[str]:
        return ["y", "h", "c"] if self.kind == "lstm" else ["y", "h"]

    def build(self) -> tuple[nn.Module, torch.Tensor]:
        torch.manual_seed(0)
        net = {"lstm": nn.LSTM, "gru": nn.GRU}[self.kind]
        model = net(self.hidden, self.hidden, self.layers, bidirectional=self.bidirectional)
        return model.eval(), torch.randn(STEPS, 1, self.hidden)


RECURRENT = [RecurrentNet(*of) for of in itertools.product(("lstm", "gru"), (64, 256), (1, 2), (False, True))]
