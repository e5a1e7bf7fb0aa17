"""Which operators must give PyTorch's results to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.torch_graph.simplify.exact_ops import exact_ops
from tests.nets import net_of
from tests.releases import NEWEST

Net = Callable[[Tensor], Any]


def function_net(function: Net) -> nn.Module:
    return net_of(lambda _, x: function(x), line=nn.Linear(6, 6))


def is_exact(net: Net, name: str = "div") -> bool:
    """Whether the operator of that name, of which there is one, is exact in a net."""
    graph = ModelExport(function_net(net).eval(), torch.randn(4, 6)).simplified(TractNNEF(NEWEST, check_io=False))
    (node,) = [op for op in graph.op_nodes if op.kind.partition(".")[0] == f"aten::{name}"]
    return id(node) in exact_ops(graph)


EXACT: dict[str, Net] = {
    "rounded": lambda x: (x / 7).ceil(),
    "cast to integers": lambda x: (x / 7).long(),
    "cast to conditions": lambda x: (x / 7 - 1).bool(),
    "compared": lambda x: x / 7 == 1,
    "the place of a maximum": lambda x: (x / 7).argmax(1),
    "the places of the largest": lambda x: (x / 7).topk(2)[1],
    "a bin": lambda x: torch.bucketize(x / 7, torch.tensor([0.0, 1.0])),
    "rounded by a mode": lambda x: x.div(7).remainder(3),
    "through others": lambda x: (-(x / 7)[1:].mT.clamp(-1, 1) * 10 + x[1:].mT).floor(),
    "through a sum": lambda x: (x / 7).sum(1) > 2,
    "through a choice": lambda x: torch.where(x > 0, x / 7, x).round(),
    "also used otherwise": lambda x: (y := x / 7, y.floor()),
    "nearest": lambda x: F.grid_sample(x[None, None], (x / 7)[None, :, :2, None].mT, mode="nearest"),
    "a running sum of many": lambda x: (x / 7).flatten().repeat(3).cumsum(0),
    "a running product of many": lambda x: (x / 7).repeat(20, 1).cumprod(0),
}
PLAIN: dict[str, Net] = {
    "an output": lambda x: x / 7,
    "a product": lambda x: torch.mm(x / 7, x.mT) > 0,
    "a softmax": lambda x: (x / 7).softmax(1).argmax(1),
    "a norm": lambda x: F.layer_norm(x / 7, [6]) > 0,
    "clamped": lambda x: (x / 7).relu().clamp(0, 1),
    "a question of range": lambda x: (y := x / 7).isnan() | y.isfinite(),
    "the largest, not their places": lambda x: (x / 7).max(1)[0],
    "beside a decision": lambda x: (x / 7, x.floor()),
    "a running sum of few": lambda x: (x / 7).cumsum(1),
    "a running maximum": lambda x: (x / 7).repeat(20, 1).cummax(0)[0],
    "a number of any shape": lambda x: (x / 7).sum().cumsum(0),
}


@pytest.mark.parametrize("name", EXACT)
def test_what_decides_is_exact(name: str) -> None:
    assert is_exact(EXACT[name])


@pytest.mark.parametrize("name", PLAIN)
def test_what_decides_nothing_is_fast(name: str) -> None:
    assert not is_exact(PLAIN[name])


def test_other_operators_are_exact_too() -> None:
    assert is_exact(lambda x: x.mean(1) == 1, "mean")
    assert is_exact(lambda x: x.abs().log2().floor(), "log2")
    assert not is_exact(lambda x: x.mean(1).sigmoid(), "mean")
    assert is_exact(lambda x: (x.sigmoid() * -5).unflatten(1, (2, 3)).cumsum(1), "sigmoid")
    assert is_exact(lambda x: torch.special.expit(x).cumprod(1), "special_expit")
    for amplified in (
        lambda x: (x.sigmoid() + 1e-8).log(),
        lambda x: (1 - x.sigmoid()).log1p(),
        lambda x: x / x.sigmoid().mean(1, True),
        lambda x: (x.sigmoid() * -5).repeat(1, 11).sum(1),
        lambda x: (x.sigmoid() * -5).repeat(17, 1).sum(),
    ):
        assert is_exact(amplified, "sigmoid")
    assert is_exact(lambda x: (1 - x.tanh().square() + 1e-6).log(), "tanh")
    assert is_exact(lambda x: x / F.softplus(x), "softplus")
    assert is_exact(lambda x: (0.5 + 0.5 * x.erf()).log(), "erf")
    for bounded in (
        lambda x: (x.sigmoid() * -5).sum(1),
        lambda x: (x.sigmoid() * -5).repeat(1, 11).mean(1),
        lambda x: x.sigmoid() / (x.abs() + 1),
        lambda x: x[0, 0].sigmoid().sum(0),
        lambda x: (x.sigmoid() @ x.mT).log(),
    ):
        assert not is_exact(bounded, "sigmoid")


def test_statements_change_only_where_something_is_decided() -> None:
    def casts(net: Net) -> int:
        graph = ModelExport(function_net(net).eval(), torch.randn(4, 6)).lower(TractNNEF(NEWEST, check_io=False))
        return sum(operation.name == "tract_core_cast" for operation in graph.operations)

    assert casts(lambda x: ((x / 7).mean(1), F.avg_pool1d(x, 3), x.abs().log2())) == 0
    assert casts(lambda x: (x / 7).ceil()) == 2
