"""Recurrent nets, cells and packed sequences; the whole product is the conformance suite `recurrent`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.utils import rnn

from tests.contract.cases import build, case, randn


class Packed(nn.Module):
    """Sequences of lengths 3, 5 and 2, known at export."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor) -> Any:
        packed = rnn.pack_padded_sequence(x, [3, 5, 2], enforce_sorted=False)
        y, state = self.net(packed)
        return rnn.pad_packed_sequence(y, total_length=6), state


class OfComputedBatch(nn.Module):
    """`batch` makes [T, batch, features] of the input."""

    def __init__(self, net: nn.Module, batch: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.net, self.batch = net, batch

    def forward(self, x: torch.Tensor) -> Any:
        return self.net(self.batch(x))


COMPUTED = {
    "(T + 1) // 2": lambda x: x[:, ::2],
    "2 T + 1": lambda x: torch.cat([x, x, x[:, :1]], 1),
    "B * T": lambda x: x.reshape(x.shape[0] * x.shape[1], 1, 4).transpose(0, 1),
}
"""A batch that is computed from sizes. The input is [B, T, 4]."""

NETS = {
    "lstm": lambda: nn.LSTM(4, 7, 2, bidirectional=True),
    "lstm projected": lambda: nn.LSTM(4, 7, proj_size=3),
    "gru": lambda: nn.GRU(4, 7, bidirectional=True),
    "rnn tanh": lambda: nn.RNN(4, 7, 2),
    "rnn relu": lambda: nn.RNN(4, 7, nonlinearity="relu", bias=False),
}

NETS_OF_ONE_FEATURE = {
    "lstm": lambda: nn.LSTM(1, 7, batch_first=True),
    "gru": lambda: nn.GRU(1, 7, batch_first=True, bidirectional=True),
    "gru of a large state": lambda: nn.GRU(1, 70),
    "gru without bias": lambda: nn.GRU(1, 7, bias=False),
    "rnn": lambda: nn.RNN(1, 7),
}

CASES = [
    *(
        case(f"{name} of one feature", build(make), randn(5, 3, 1)).dynamic({0: {0: "T", 1: "B"}})
        for name, make in NETS_OF_ONE_FEATURE.items()
    ),
    *(case(name, build(make), randn(5, 3, 4)) for name, make in NETS.items()),
    *(
        case(f"{name} dynamic", build(make), randn(5, 3, 4)).dynamic({0: {0: "T", 1: "B"}})
        for name, make in NETS.items()
    ),
    *(
        case(f"{name} of {size} rows", build(lambda m=make, b=batch: OfComputedBatch(m(), b)), randn(3, 6, 4)).dynamic(
            {0: {0: "B", 1: "T"}}
        )
        for name, make in NETS.items()
        for size, batch in COMPUTED.items()
    ),
    *(case(f"{name} of one", build(make), randn(5, 1, 4)) for name, make in NETS.items()),
    *(case(f"{name} packed", build(lambda m=make: Packed(m())), randn(5, 3, 4)) for name, make in NETS.items()),
    case("lstm cell", build(nn.LSTMCell, 4, 7), randn(3, 4)),
    case("gru cell", build(nn.GRUCell, 4, 7), randn(3, 4)),
    case("rnn tanh cell", build(nn.RNNCell, 4, 7), randn(3, 4)),
    case("rnn relu cell", build(nn.RNNCell, 4, 7, nonlinearity="relu"), randn(3, 4)),
]
