"""A model's Python reads its constants while it is captured; what it writes to, and inputs, it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from t2n_core.errors import CaptureError
from t2n_core.torch_graph.capture.tracer import TorchModuleTracer, bind_inputs
from tests.nets import net_of


def net_for(function: Callable[..., Tensor]) -> nn.Module:
    return net_of(
        lambda self, x: function(self, x),
        flag=torch.tensor(True),
        count=torch.tensor(3),
        mask=torch.tensor([True, False, True, True]),
        scale=nn.Parameter(torch.tensor(-2.5)),
    )


def captured(function: Callable[..., Tensor]) -> Any:
    model = net_for(function)
    originals = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    try:
        return TorchModuleTracer(
            model, args=bind_inputs(model, (torch.randn(2, 7, 4),)), dynamic_axes={"x": {1: "T"}}
        ).trace()
    finally:
        assert all(torch.equal(tensor, originals[name]) for name, tensor in model.state_dict().items())


def flag(net: Any, x: Tensor) -> Tensor:
    return x * 2 if net.flag else x[:, :1]


def number(net: Any, x: Tensor) -> Tensor:
    return x * net.scale.item() + float(net.scale)


def part(net: Any, x: Tensor) -> Tensor:
    return x[..., : int(net.count)]


def mask(net: Any, x: Tensor) -> Tensor:
    return x[..., net.mask]


def of_an_input(net: Any, x: Tensor) -> Tensor:
    return x * 2 if x.sum() > 0 else x


def counted_calls(net: Any, x: Tensor) -> Tensor:
    net.count += 1
    return x * 2 if net.count > 4 else x


def counted_through_a_view(net: Any, x: Tensor) -> Tensor:
    net.count.view(1).add_(1)
    return x * 2 if net.count > 4 else x


def drawn(net: Any, x: Tensor) -> Tensor:
    return x * 2 if torch.rand_like(net.scale) > 0.5 else x


@pytest.mark.parametrize(("function", "width"), [(flag, 4), (number, 4), (part, 3), (mask, 3)])
def test_elements_of_constants_are_read(function: Callable[..., Tensor], width: int) -> None:
    capture = captured(function)
    assert capture.graph.outputs[0].shape[2] == width
    assert str(capture.graph.outputs[0].shape[1]) == "T"


@pytest.mark.parametrize("function", [of_an_input, counted_calls, counted_through_a_view, drawn])
def test_other_elements_are_not(function: Callable[..., Tensor]) -> None:
    with pytest.raises(CaptureError, match="has Python control flow that depends on values in a tensor"):
        captured(function)
