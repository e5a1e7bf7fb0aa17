"""The table of operators whose error or cost grows with the size of an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from t2n_core import ModelExport
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.op.growing import growing_operators
from tests.nets import OfFunction

ALONG_T: dict[str, tuple[Callable[[Tensor], Any], set[str]]] = {
    "cumsum": (lambda x: x.cumsum(2), {"cumsum", "positions"}),
    "running maximum": (lambda x: x.cummax(-1).values, {"cummax"}),
    "mean": (lambda x: x.mean(2), {"mean"}),
    "sum of everything": (lambda x: x.sum(), {"sum"}),
    "softmax": (lambda x: x.softmax(-1), {"softmax"}),
    "norm": (lambda x: x.norm(dim=(1, 2)), {"linalg_vector_norm"}),
    "statistics": (nn.InstanceNorm1d(3), {"instance_norm"}),
    "attention": (
        lambda x: nn.functional.scaled_dot_product_attention(x.mT, x.mT, x.mT),
        {"scaled_dot_product_attention"},
    ),
    "places": (lambda x: x.topk(2, 2).indices * 0.5, {"topk", "positions"}),
    "order": (lambda x: x.argsort(2), {"argsort"}),
    "a median": (lambda x: x.median(2).values, {"median"}),
    "a median of everything": (lambda x: x.median(), {"median"}),
    "a quantile": (lambda x: x.quantile(0.5, -1), {"quantile"}),
    "rows in order": (lambda x: x.permute(2, 0, 1).msort(), {"msort"}),
    "positions": (lambda x: x * torch.sin(torch.arange(x.shape[2]) * 0.01), {"positions"}),
}
OTHERWISE: dict[str, Callable[[Tensor], Any]] = {
    "a sum of channels": lambda x: x.sum(1),
    "a softmax of channels": lambda x: x.softmax(1),
    "places along the channels": lambda x: x.topk(2, 1).indices * 0.5,
    "channels in order": lambda x: x.transpose(0, 1).msort(),
    "a convolution": nn.Conv1d(3, 2, 3),
    "an activation": torch.relu,
}


def operators_of(net: Callable[[Tensor], Any]) -> dict[str, set[str]]:
    model = net if isinstance(net, nn.Module) else OfFunction(net)
    export = ModelExport(model.eval(), torch.randn(2, 3, 20), input_names=["x"], dynamic_axes={"x": {2: "T"}})
    captured = export.captured
    return growing_operators(captured.graph, captured.range, captured.symbols)


@pytest.mark.parametrize("name", ALONG_T)
def test_operators_along_a_dynamic_axis(name: str) -> None:
    net, expected = ALONG_T[name]
    assert operators_of(net) == {"T": expected}


@pytest.mark.parametrize("name", OTHERWISE)
def test_operators_along_other_axes(name: str) -> None:
    assert operators_of(OTHERWISE[name]) == {}


def test_positions_of_a_bounded_axis() -> None:
    """Samples of the usual sizes reach a maximum that is the example's size."""
    export = ModelExport(
        OfFunction(lambda x: x * torch.sin(torch.arange(x.shape[2]) * 0.01)).eval(),
        torch.randn(2, 3, 20),
        input_names=["x"],
        dynamic_axes={"x": {2: "T"}},
    )
    captured = export.captured
    size_range = SizeRange({"T": (1, 20)})
    assert growing_operators(captured.graph, size_range, captured.symbols) == {}
