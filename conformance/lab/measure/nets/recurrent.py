"""Recurrent nets whose speed in the engine is measured. Imports nothing but torch, as `exported.py`."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
from torch import nn

STEPS = 100


@dataclass(frozen=True, slots=True)
class RecurrentNet:
    """One LSTM or GRU over 100 steps, as wide inside as its input; `dynamic`: exported for any number of steps."""

    kind: str
    hidden: int
    layers: int = 1
    bidirectional: bool = False
    batch: int = 1
    dynamic: bool = False

    @property
    def name(self) -> str:
        words = [self.kind, str(self.hidden), f"l{self.layers}", "bi" if self.bidirectional else "uni"]
        words += [f"batch{self.batch}"] * (self.batch > 1) + ["dynamic"] * self.dynamic
        return "-".join(words)

    @property
    def outputs(self) -> list[str]:
        return ["y", "h", "c"] if self.kind == "lstm" else ["y", "h"]

    def dynamic_axes(self, name: str) -> dict[str, dict[int, str]]:
        """Return the dynamic axes of the input under that name."""
        return {name: {0: "T"}} if self.dynamic else {}

    def build(self) -> tuple[nn.Module, torch.Tensor]:
        torch.manual_seed(0)
        net = {"lstm": nn.LSTM, "gru": nn.GRU}[self.kind]
        model = net(self.hidden, self.hidden, self.layers, bidirectional=self.bidirectional)
        return model.eval(), torch.randn(STEPS, self.batch, self.hidden)


_KINDS = list(itertools.product(("lstm", "gru"), (64, 256)))
RECURRENT = [
    *(RecurrentNet(*kind, layers, both) for kind in _KINDS for layers in (1, 2) for both in (False, True)),
    *(
        RecurrentNet(*kind, batch=batch, dynamic=dynamic)
        for kind in _KINDS
        for batch, dynamic in ((4, False), (1, True))
    ),
    *(RecurrentNet(*kind, batch=4, dynamic=True) for kind in _KINDS),
]
