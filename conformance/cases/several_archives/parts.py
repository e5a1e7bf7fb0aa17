"""What the programs of the suite share: a seed, and weights whose results differ from step to step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from t2n_core.program import Program, items, text

Make = Callable[[], Program]


def built(module: Any, spread: float = 2.0) -> Any:
    """Return a module in evaluation mode whose matrices are multiplied by `spread`."""
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() > 1:
                parameter.mul_(spread)
    return module.eval()


def zeros(*shape: int, dtype: str = "float32") -> Any:
    """Return the expression of an array of zeros."""
    return ["full", items(*shape), 0, text(dtype)]


def item(array: str) -> Any:
    """Return the expression of the only element of an array."""
    return ["reshape", array, items()]


class Stack(nn.Module):
    """A recurrent net over frames with a projection."""

    def __init__(self, features: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.rnn = nn.GRU(features, hidden, batch_first=True)
        self.out = nn.Linear(hidden, outputs)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return self.out(self.rnn(features)[0])
