"""Places that are dynamic sizes are looked up one by one, which is what PyTorch's own indexing does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from t2n_core.torch_graph.capture.tracer import CapturedModel, TorchModuleTracer
from t2n_core.torch_graph.frontend.inputs import bind_inputs
from t2n_core.torch_graph.frontend.sources import source_of
from t2n_core.torch_graph.overrides import index_by_tensor
from t2n_core.torch_graph.overrides.index_by_tensor import getitem, setitem

ALL, TWO, MASK = slice(None), torch.tensor([2, 0]), torch.tensor([True, False, True])
INDICES: list[tuple[Any, ...]] = [
    (1,),
    (ALL, 3),
    (ALL, -1),
    (..., 2),
    (0, ALL, 1),
    (ALL, None, 3),
    (None, 1, ..., 2),
    (TWO, 3),
    (ALL, 4, TWO),
    (TWO, ALL, 1),
    (MASK, 2),
    (0, slice(1, 4), TWO),
    (1, 2, 3),
]


@pytest.fixture
def every_number_is_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_by_tensor, "_is_size", lambda item: isinstance(item, int))


@pytest.mark.usefixtures("every_number_is_a_size")
@pytest.mark.parametrize("index", INDICES, ids=str)
def test_reading_and_writing(index: tuple[Any, ...]) -> None:
    x = torch.randn(3, 5, 4)
    assert getitem(x, index).equal(x[index])
    for value in (-7.5, torch.randn(x[index].shape), torch.randn(1, *x[index].shape)):
        expected, actual = x.clone(), x.clone()
        expected[index] = value
        setitem(actual, index, value)
        assert actual.equal(expected)


class Function(torch.nn.Module):
    def __init__(self, function: Callable[[torch.Tensor], None]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        self.function(y)
        return y


def captured(function: Callable[[torch.Tensor], None]) -> CapturedModel:
    model = Function(function)
    inputs = bind_inputs(source_of(model), {"x": torch.randn(3, 7, 4)})
    return TorchModuleTracer(model, args=inputs, dynamic_axes={"x": {1: "T"}}).trace()


def middle(y: torch.Tensor) -> None:
    y[:, y.shape[1] // 2] = 0


def last_at_an_index(y: torch.Tensor) -> None:
    y[TWO, y.shape[1] - 1] += 1


@pytest.mark.parametrize("function", [middle, last_at_an_index])
def test_capture_keeps_the_size_free(function: Callable[[torch.Tensor], None]) -> None:
    assert str(captured(function).range) == "T >= 1"


def test_pytorch_is_as_before_afterwards() -> None:
    before = torch.Tensor.__getitem__, torch.Tensor.__setitem__
    captured(middle)
    assert (torch.Tensor.__getitem__, torch.Tensor.__setitem__) == before
