"""A decision is dropped only where the graphs of both sides are proven to be equal."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from t2n_core import ModelExport
from t2n_core.errors import RangeWarning
from t2n_core.torch_graph.constraints.declared_axes import SizeFrom
from tests.nets import OfFunction, net_of


def range_of(function: Callable[[Tensor], Tensor]) -> str:
    axes = {"x": {0: "B", 1: "T"}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RangeWarning)
        return str(ModelExport(OfFunction(function).eval(), torch.zeros(2, 7, 4), dynamic_axes=axes).captured.range)


def causal(x: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(x, x, x, is_causal=bool(x.shape[1] > 1))


def masked(x: Tensor) -> Tensor:
    scores = x @ x.transpose(1, 2)
    if x.shape[1] > 1:
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        scores = scores.masked_fill(~mask, -1e9)
    return scores


def spread(x: Tensor) -> Tensor:
    positions = torch.arange(x.shape[1])[None]
    if x.shape[0] != 1:
        positions = positions.expand(x.shape[0], -1)
    return x + positions[..., None]


def first_of_one(x: Tensor) -> Tensor:
    return x.mean(1) if x.shape[1] > 1 else x[:, 0]


def turned(x: Tensor) -> Tensor:
    return x.flip(1) if x.shape[1] != 1 else x


def written_in_parts(x: Tensor) -> Tensor:
    """Writes into all rows, as a view, and at places in the middle."""
    if x.shape[0] != 1:
        x = x.expand(x.shape[0], -1, -1)
    states = torch.zeros_like(x)
    for channel in range(4):
        states[:, :, channel] = x[..., channel] * (channel + 1)
    return states


@pytest.mark.parametrize("function", [causal, masked, spread, first_of_one, turned, written_in_parts])
def test_a_decision_without_a_difference_is_dropped(function: Callable[[Tensor], Tensor]) -> None:
    assert range_of(function) == "B >= 1, T >= 1"


def scaled(x: Tensor) -> Tensor:
    return x * 2 if x.shape[1] > 1 else x * 3


def nested(x: Tensor) -> Tensor:
    if x.shape[1] == 1 and x.shape[0] == 1:
        return x * 3
    return x * 2


def float_or_integer(x: Tensor) -> Tensor:
    return torch.full_like(x, 1.5) if x.shape[1] > 1 else torch.full_like(x, 2.5)


def another_constant(x: Tensor) -> Tensor:
    return x + torch.tensor([1.0, 2.0, 3.0, 4.0] if x.shape[1] > 1 else [1.0, 2.0, 3.0, 5.0])


def seen_by_noise_alone(x: Tensor) -> Tensor:
    return x.clamp(max=1e9) if x.shape[1] > 1 else x


@pytest.mark.parametrize("function", [scaled, nested, float_or_integer, another_constant, seen_by_noise_alone])
def test_a_decision_with_a_difference_is_kept(function: Callable[[Tensor], Tensor]) -> None:
    assert range_of(function) == "B >= 1, T >= 2"


def test_a_model_that_fails_on_the_other_side_has_no_such_sizes() -> None:
    def failing(x: Tensor) -> Tensor:
        if x.shape[1] == 1:
            raise ValueError("too short")
        return x * 2

    assert range_of(failing) == "B >= 1, T >= 2"


def test_a_size_that_several_inputs_share_is_proven() -> None:
    inputs = {"x": torch.randn(2, 3, 4), "past": torch.randn(2, 5, 4), "kept": torch.ones(3) > 0}
    axes = {"x": {1: "S"}, "past": {1: SizeFrom("P", 0)}, "kept": {0: "S"}}
    net = net_of(lambda _, x, past, kept: torch.cat([past, x], 1).mean(1, keepdim=True) + x * kept[None, :, None])
    assert str(ModelExport(net.eval(), inputs, dynamic_axes=axes).captured.range) == "P >= 0, S >= 1"
