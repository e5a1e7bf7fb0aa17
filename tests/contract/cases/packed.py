"""Packed sequences whose lengths are an input: nets, orders, layouts and dynamic axes."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.utils import rnn

from tests.contract.cases import build, case, randint, randn, tensor


class Net(nn.Module):
    """A recurrent net over packed sequences, and its output padded to the length of the input."""

    def __init__(self, net: nn.Module, ordered: bool = False, more: int = 0) -> None:
        super().__init__()
        self.net, self.ordered, self.more = net, ordered, more

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> Any:
        first = self.net.batch_first
        packed = rnn.pack_padded_sequence(x, lengths, batch_first=first, enforce_sorted=self.ordered)
        y, state = self.net(packed)
        total = x.shape[1 if first else 0] + self.more
        return rnn.pad_packed_sequence(y, batch_first=first, padding_value=-0.5, total_length=total), state


class FromState(Net):
    """The same from a given state, of which only the last state is wanted."""

    def forward(self, x: torch.Tensor, lengths: torch.Tensor, state: torch.Tensor) -> Any:  # type: ignore[override]
        return self.net(rnn.pack_padded_sequence(x, lengths, enforce_sorted=False), state)[1]


class OfTokens(nn.Module):
    """An embedding of packed tokens, as tutorials have it: only the rows pass through it."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.net, self.line = nn.Embedding(9, 4), nn.GRU(4, 7), nn.Linear(7, 3)

    def forward(self, tokens: torch.Tensor, lengths: torch.Tensor) -> Any:
        packed = rnn.pack_padded_sequence(tokens, lengths, enforce_sorted=False)
        rows = rnn.PackedSequence(self.table(packed.data), *packed[1:])
        y, _ = self.net(rows)
        lines = rnn.PackedSequence(self.line(y.data), *y[1:])
        return rnn.pad_packed_sequence(lines, total_length=tokens.shape[0])[0]


class Total(Net):
    """Adds the rows of a packed sequence, which no mask can follow."""

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> Any:
        return rnn.pack_padded_sequence(x, lengths, enforce_sorted=False).data.sum(0)


class Count(Net):
    """Divides by the number of rows."""

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> Any:
        return x / rnn.pack_padded_sequence(x, lengths, enforce_sorted=False).data.shape[0]


class Joined(Net):
    """Joins rows with themselves."""

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> Any:
        rows = rnn.pack_padded_sequence(x, lengths, enforce_sorted=False).data
        return torch.cat([rows, rows])


class Longest(Net):
    """Pads to the longest of the lengths, a size that depends on data."""

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> Any:
        return rnn.pad_packed_sequence(rnn.pack_padded_sequence(x, lengths, enforce_sorted=False))[0]


NETS = {
    "lstm": lambda **of: nn.LSTM(4, 7, 2, bidirectional=True, **of),
    "lstm projected": lambda **of: nn.LSTM(4, 7, proj_size=3, bidirectional=True, **of),
    "gru": lambda **of: nn.GRU(4, 7, 2, bidirectional=True, **of),
    "rnn tanh": lambda **of: nn.RNN(4, 7, 2, **of),
    "rnn relu": lambda **of: nn.RNN(4, 7, nonlinearity="relu", bias=False, bidirectional=True, **of),
}
MIXED, SORTED = tensor([3, 5, 2]), tensor([5, 4, 2])

CASES = [
    *(case(name, build(lambda m=make: Net(m())), randn(5, 3, 4), MIXED) for name, make in NETS.items()),
    *(
        case(
            f"{name} sorted, batch first", build(lambda m=make: Net(m(batch_first=True), True)), randn(3, 5, 4), SORTED
        )
        for name, make in NETS.items()
    ),
    *(
        case(f"{name} dynamic", build(lambda m=make: Net(m())), randn(5, 3, 4), MIXED).dynamic(
            {0: {0: "T", 1: "B"}, 1: {0: "B"}}
        )
        for name, make in NETS.items()
    ),
    case("longer than the input", build(lambda: Net(nn.GRU(4, 7), more=2)), randn(5, 3, 4), MIXED),
    case("longer than a dynamic input", build(lambda: Net(nn.GRU(4, 7), more=2)), randn(5, 3, 4), MIXED).dynamic(
        {0: {0: "T"}}
    ),
    case("one sequence", build(lambda: Net(nn.LSTM(4, 7))), randn(5, 1, 4), tensor([3])),
    case("from a state", build(lambda: FromState(nn.GRU(4, 7))), randn(5, 3, 4), MIXED, randn(1, 3, 7)),
    case("tokens", build(OfTokens), randint(0, 9, 5, 3), MIXED),
    case("tokens dynamic", build(OfTokens), randint(0, 9, 5, 3), MIXED).dynamic({0: {0: "T", 1: "B"}, 1: {0: "B"}}),
    case("rows summed", build(lambda: Total(nn.GRU(4, 7))), randn(5, 3, 4), MIXED).refused("known at run time only"),
    case("rows counted", build(lambda: Count(nn.GRU(4, 7))), randn(5, 3, 4), MIXED).refused("`shape` of a packed"),
    case("rows joined", build(lambda: Joined(nn.GRU(4, 7))), randn(5, 3, 4), MIXED).refused("`cat` of a packed"),
    case("no total length", build(lambda: Longest(nn.GRU(4, 7))), randn(5, 3, 4), MIXED).refused("total_length"),
]
