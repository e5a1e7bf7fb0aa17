"""Attention in a captured graph: one node of known shape, wherever its arguments say what the shape is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from t2n_core import ModelExport
from t2n_core.torch_graph.capture.modes import CaptureMode
from t2n_core.torch_graph.compat.private import FakeTensorMode, ShapeEnv, TorchDispatchMode

QUERY, KEY, VALUE = (torch.randn(2, 4, length, width) for length, width in ((5, 8), (7, 8), (7, 3)))
MASK = torch.randn(2, 1, 5, 7)
FEW = torch.randn(2, 2, 7, 8), torch.randn(2, 2, 7, 3)


class Attention(nn.Module):
    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        return self.function(query, key, value, mask)


KNOWN: dict[str, Callable[..., Tensor]] = {
    "plain": lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v),
    "masked": lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m),
    "mask of one query": lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m[0, 0, :1]),
    "causal": lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3),
    "grouped": lambda q, k, v, m: F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True),
}
OTHERS: dict[str, Callable[..., Tensor]] = {
    "keys of one head": lambda q, k, v, m: F.scaled_dot_product_attention(q, k[:, :1], v[:, :1]),
    "vmap": lambda q, k, v, m: torch.vmap(F.scaled_dot_product_attention)(q, k, v),
    "autocast": lambda q, k, v, m: _in_bfloat16(q, k, v),
}


def _in_bfloat16(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return F.scaled_dot_product_attention(query, key, value)


class Noting(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def fake_results(function: Callable[..., Tensor]) -> tuple[Tensor, bool]:
    """Return what a function gives on fake tensors while a model is captured, and whether it calls the stand-in."""
    with FakeTensorMode(shape_env=ShapeEnv()) as mode, Noting() as noting, CaptureMode():
        result = function(*(mode.from_tensor(tensor, static_shapes=True) for tensor in (QUERY, KEY, VALUE, MASK)))
    return result, "t2n_capture.scaled_dot_product_attention.default" in noting.names


@pytest.mark.parametrize("name", KNOWN)
def test_the_shape_is_read_off_the_arguments(name: str) -> None:
    result, is_read = fake_results(KNOWN[name])
    expected = KNOWN[name](QUERY, KEY, VALUE, MASK)
    assert (result.shape, result.dtype, is_read) == (expected.shape, expected.dtype, True)


@pytest.mark.parametrize("name", OTHERS)
def test_pytorch_computes_where_a_call_does_more(name: str) -> None:
    result, is_read = fake_results(OTHERS[name])
    expected = OTHERS[name](QUERY, KEY, VALUE, MASK)
    assert (result.shape, result.dtype, is_read) == (expected.shape, expected.dtype, False)


@pytest.mark.parametrize("name", KNOWN)
def test_the_graph_has_the_operator_of_pytorch(name: str) -> None:
    net = Attention(KNOWN[name])
    axes = {"query": {0: "B", 2: "T"}, "key": {0: "B", 2: "S"}, "value": {0: "B", 2: "S"}, "mask": {0: "B"}}
    if name in ("masked", "mask of one query"):
        axes = {argument: {0: "B"} for argument in axes}
    captured = ModelExport(net, (QUERY, KEY, VALUE, MASK), dynamic_axes=axes).captured
    (attention,) = [op for op in captured.graph.op_nodes if "attention" in op.kind]
    assert attention.kind == "aten::scaled_dot_product_attention"
    assert str(captured.range).startswith("B >= 1")
