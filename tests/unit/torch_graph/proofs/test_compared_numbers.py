"""Numbers that the code of a model decides by, and the sizes next to them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from t2n_core.torch_graph.proofs.compared_numbers import compared_numbers, sizes_near

LIMIT = 77


def clipped(x: Tensor) -> Tensor:
    return x[:, :LIMIT] if x.shape[1] > LIMIT else x


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.longest = 44
        self.inner = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.inner(x) * 999
        if x.shape[1] % 61 == 7:
            return x
        for _ in range(x.shape[1] - 19):
            x = x + 1
        if x.shape[1] > self.longest:
            return clipped(x)
        return x if x.shape[1] not in (85, 86) else -x


def test_numbers_of_the_code_that_a_model_reaches() -> None:
    assert sorted(compared_numbers(Net())) == [(19,), (44,), (61, 7), (77,), (85, 86)]


def test_code_of_pytorch_is_left_out() -> None:
    assert compared_numbers(nn.MultiheadAttention(8, 2)) == []
    assert compared_numbers(torch.relu) == []


@pytest.mark.parametrize(
    ("numbers", "symbols", "expected"),
    [
        ((61, 7), {"T": 5}, [{"T": 68}, {"T": 61}, {"T": 62}, {"T": 60}, {"T": 7}, {"T": 8}, {"T": 6}]),
        ((400,), {"T": 5}, [{"T": 20}, {"T": 400}, {"T": 401}, {"T": 399}]),
    ],
)
def test_sizes_of_one_symbol(numbers: Any, symbols: Any, expected: Any) -> None:
    assert list(sizes_near([numbers], symbols)) == expected


def test_sizes_of_two_symbols() -> None:
    candidates = list(sizes_near([(196,)], {"H": 8, "W": 6}))
    assert {"H": 14, "W": 14} in candidates
    assert {"H": 190, "W": 6} in candidates
    assert {"H": 202, "W": 6} in candidates
    assert {"H": 10, "W": 10} in candidates
    assert all(sizes.keys() == {"H", "W"} for sizes in candidates)


def test_decisions_take_turns() -> None:
    first = [next(iter(sizes_near([numbers], {"T": 5}))) for numbers in ((61, 7), (13,))]
    assert list(sizes_near([(61, 7), (13,)], {"T": 5}))[:2] == first
