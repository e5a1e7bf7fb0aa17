"""Inputs and outputs that are more than tensors: tuples, lists, dictionaries, objects, numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from conformance.cases.programs.program import Program, numbers, program


class Pair(NamedTuple):
    """Two tensors with names."""

    left: Tensor
    right: Tensor


@dataclass
class Features:
    """Features with their lengths."""

    values: Tensor
    gains: dict[str, Tensor]


pytree.register_dataclass(Features)


def _pair() -> tuple[Tensor, Tensor]:
    return torch.randn(2, 3), torch.randn(2, 3)


def _deep(x: dict[str, Any]) -> dict[str, Any]:
    first, (second, third) = x["a"], x["b"]
    return {"sum": first + second, "rest": [third * 2, (first - third,)]}


class _OneOfMany(nn.Module):
    """A layer with two outputs, of which the second is used."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 4)

    def forward(self, x: Tensor) -> Tensor:
        return torch.max(self.linear(x), dim=1, keepdim=True).indices + 0.5


PROGRAMS: dict[str, Program] = {
    "tuple_in": program(lambda xs: xs[0] + 2 * xs[1], lambda: (_pair(),)),
    "list_in": program(lambda xs: xs[0] + 2 * xs[1], lambda: (list(_pair()),)),
    "dictionary_in": program(lambda x: x["a"] - x["b"], lambda: (dict(zip("ab", _pair(), strict=True)),)),
    "named_tuple_in": program(lambda x: x.left - x.right, lambda: (Pair(*_pair()),)),
    "object_in": program(
        lambda x: x.values * x.gains["left"] - x.gains["right"],
        lambda: (Features(torch.randn(2, 3), dict(zip(("left", "right"), _pair(), strict=True))),),
    ),
    "deep_in_and_out": program(_deep, lambda: ({"a": torch.randn(2, 3), "b": [torch.randn(2, 3), torch.randn(2, 3)]},)),
    "tuple_out": program(lambda x: (x + 1, x * 2), numbers(2, 3)),
    "dictionary_out": program(lambda x: {"more": x + 1, "double": x * 2}, numbers(2, 3)),
    "named_tuple_out": program(lambda x: Pair(x + 1, x * 2), numbers(2, 3)),
    "numbers_in": program(lambda x, n, s: x[:, :n] * s, lambda: (torch.randn(2, 5), 3, 0.5)),
    "input_as_output": program(lambda x: (x, x * 2), numbers(2, 3)),
    "one_output_twice": program(lambda x: (x.exp(),) * 2, numbers(2, 3)),
    "second_of_two_outputs": Program(_OneOfMany, numbers(2, 3)),
    "rank_of_a_batch": program(lambda x: x.reshape(-1, *x.shape[2:]).tanh(), numbers(2, 3, 4)),
    "number_out": program(lambda x: x.sum(), numbers(2, 3)),
}
