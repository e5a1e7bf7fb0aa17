"""Python's calls on sizes stay symbolic while a model is captured, and its functions are as they were afterwards."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core.errors import CaptureError
from t2n_core.torch_graph.capture.tracer import TorchModuleTracer, bind_inputs
from t2n_core.torch_graph.overrides import python_calls


@functools.lru_cache(None)
def table(count: Any) -> torch.Tensor:
    return torch.arange(count) * 1.0


def inner(x: torch.Tensor) -> Any:
    return [int(size) for size in x.shape][1]


class Numbers(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum(1) / float(x.shape[1]) + int(x.shape[1] / 2) + len(x.mT[0]) + inner(x) + table(x.shape[1]).sum()


class Fails(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * int(x.shape[1]) if bool(x.sum() > int(x.shape[1])) else x


def captured(model: nn.Module) -> Any:
    return TorchModuleTracer(
        model, args=bind_inputs(model, (torch.randn(2, 7, 4),)), dynamic_axes={"x": {1: "T"}}
    ).trace()


def test_numbers_of_a_dynamic_size_leave_it_free() -> None:
    assert str(captured(Numbers()).range) == "T >= 1"


@pytest.mark.parametrize("model", [Numbers(), Fails()])
def test_functions_and_their_globals_are_as_they_were(model: nn.Module) -> None:
    scope, code = dict(globals()), type(model).forward.__code__
    try:
        captured(model)
    except CaptureError:
        assert isinstance(model, Fails)
    assert type(model).forward.__code__ is code
    assert globals() == scope
    assert int(2.5) == 2
    table.cache_clear()
    assert table(3).tolist() == [0, 1, 2]
    assert table.cache_info().misses == 1


def test_a_name_that_is_used_in_another_way_too_is_left_alone() -> None:
    def both(x: Any) -> Any:
        return int(x) if isinstance(x, int) else float(x)

    def method(x: Any) -> Any:
        return int(x.int())

    assert python_calls._called_globals(both.__code__) >= {"float", "isinstance"}
    assert "int" not in python_calls._called_globals(both.__code__)
    assert "int" not in python_calls._called_globals(method.__code__)
