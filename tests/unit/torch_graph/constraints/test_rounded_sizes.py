"""Sizes that are rounded from floating point are the integers that Python computes, or they are refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core.errors import CaptureError
from t2n_core.nnef.sizes.dims import evaluate
from t2n_core.torch_graph.capture.tracer import TorchModuleTracer, bind_inputs
from tests.nets import net_of

EXACT: dict[str, Callable[[Any], Any]] = {
    "ceil of a third": lambda n: math.ceil(n / 3),
    "floor of a seventh": lambda n: math.floor(n / 7),
    "half": lambda n: int(n * 0.5),
    "a tenth": lambda n: int(n * 0.1),
    "three tenths, up": lambda n: math.ceil(n * 0.3),
    "third, nearest": lambda n: round(n / 3),
    "half, to even": lambda n: round(n / 2),
    "quarter, to even": lambda n: round(n / 4),
    "sixth and a half": lambda n: int(n / 6 + 0.5),
    "output of a convolution": lambda n: int((n + 2 * 3 - 5) / 2 + 1),
    "one and a half": lambda n: int(n * 1.5 + 1),
}


def rows_net(count: Callable[[Any], Any]) -> nn.Module:
    return net_of(lambda _, x: x.new_zeros(count(x.shape[1]), 3))


def rows(count: Callable[[Any], Any]) -> Any:
    inputs = bind_inputs(rows_net(count), (torch.randn(2, 17, 4),))
    return (
        TorchModuleTracer(rows_net(count), args=inputs, dynamic_axes={"x": {1: "T"}}).trace().graph.outputs[0].shape[0]
    )


@pytest.mark.parametrize("name", list(EXACT))
def test_a_rounded_size_is_what_python_computes(name: str) -> None:
    row_count = rows(EXACT[name])
    for size in [*range(1, 300), 999, 1000, 4095, 65537, 1_000_003]:
        assert evaluate(row_count, {"T": size}) == EXACT[name](size), size


@pytest.mark.parametrize(("factor", "size", "number"), [(0.7, 90, 62), (0.29, 100, 28), (0.57, 100, 56)])
def test_a_factor_that_floating_point_rounds_down_somewhere_is_refused(factor: float, size: int, number: int) -> None:
    assert int(size * factor) == number
    with pytest.raises(CaptureError, match="computed in floating point"):
        rows(lambda n: int(n * factor))


def test_a_size_below_zero_is_truncated_towards_zero() -> None:
    row_count = rows(lambda n: int((n - 9) / 2) + 5)
    for size in range(1, 40):
        assert evaluate(row_count, {"T": size}) == int((size - 9) / 2) + 5, size
