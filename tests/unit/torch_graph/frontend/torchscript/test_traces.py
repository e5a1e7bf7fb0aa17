"""Traces: sizes that a trace writes down as numbers are frozen decisions, each with its line."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.export import Dim

from t2n_core.errors import CaptureError, FrozenDecisionWarning
from t2n_core.torch_graph.capture.tracer import TorchModuleTracer, bind_inputs
from tests.nets import OfFunction


def frozen(model: nn.Module, axes: dict[int, str] | None = None) -> list[str]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        inputs = bind_inputs(model.eval(), (torch.randn(2, 4, 8),))
        try:
            TorchModuleTracer(model, args=inputs, dynamic_axes={"x": axes or {2: "T"}}, capture="trace").trace()
        except CaptureError as refused:
            return [refused.message]
    return [str(warning.message) for warning in seen if issubclass(warning.category, FrozenDecisionWarning)]


FROZEN: dict[str, Callable[[Tensor], Tensor]] = {
    "roll": lambda x: x.roll(x.shape[2] // 2, 2),
    "global pooling": lambda x: F.avg_pool1d(x, x.shape[2]),
    "adaptive pooling": lambda x: F.adaptive_avg_pool1d(x, x.shape[2] // 2),
    "loop": lambda x: torch.stack([x[:, :, t] * t for t in range(x.shape[2])], 2),
    "padding": lambda x: F.conv1d(x, torch.ones(4, 4, 3), padding=x.shape[2] // 4),
    "dilation": lambda x: F.conv1d(x, torch.ones(4, 4, 2), dilation=x.shape[2] // 4),
    "numel": lambda x: x / x.size().numel(),
    "list of indices": lambda x: x[:, :, list(range(x.shape[2] // 2))],
    "number of rounds": lambda x: sum(x.roll(i, 2) for i in range(1 + (x.shape[2] > 37))),  # type: ignore[return-value]
    "rounds of a derived size": lambda x: sum(x.roll(i, 2) for i in range(1 + (x[:, :, ::3].shape[2] > 9))),  # type: ignore[return-value]
    "rank at one": lambda x: x + 1 if x.mean(1).t().squeeze(0).dim() == 1 else x.flip(1),
}


@pytest.mark.parametrize("function", FROZEN.values(), ids=FROZEN)
def test_a_size_that_a_trace_freezes_is_a_frozen_decision(function: Callable[[Tensor], Tensor]) -> None:
    messages = frozen(OfFunction(function))
    assert messages
    assert any(f"test_traces.py:{function.__code__.co_firstlineno}" in message for message in messages)


RANGES: dict[str, tuple[Callable[[Tensor], Tensor], tuple[int, int | None]]] = {
    "two sizes": (lambda x: x.roll(x.shape[2] // 2, 2), (8, 9)),
    "one and more": (lambda x: x[:, :, 0] if x.shape[2] == 1 else x[:, :, 1], (2, None)),
    "up to a number": (lambda x: x * 2 if x.shape[2] > 37 else x * 3, (1, 37)),
    "as far as it was compared": (lambda x: x.flip(1) if x[:, :, ::3].shape[2] > 9 else x * 2, (1, 17)),
    "all": (lambda x: x.softmax(2), (1, None)),
}


@pytest.mark.filterwarnings("ignore::t2n_core.FrozenDecisionWarning")
@pytest.mark.parametrize("name", RANGES)
def test_the_range_is_that_of_the_trace(name: str) -> None:
    function, bounds = RANGES[name]
    inputs = bind_inputs(OfFunction(function).eval(), (torch.randn(2, 4, 8),))
    tracer = TorchModuleTracer(OfFunction(function).eval(), args=inputs, dynamic_axes={"x": {2: "T"}}, capture="trace")
    assert tracer.trace().range.bounds["T"] == bounds


@pytest.mark.parametrize("name", ["global pooling", "loop", "numel"])
def test_a_trace_for_one_size_is_refused(name: str) -> None:
    inputs = bind_inputs(OfFunction(FROZEN[name]).eval(), (torch.randn(2, 4, 8),))
    tracer = TorchModuleTracer(OfFunction(FROZEN[name]), args=inputs, dynamic_axes={"x": {2: "T"}}, capture="trace")
    with pytest.raises(CaptureError, match=r"the axis `T` is not free in a trace: .*holds only for T == 8"):
        tracer.trace()


@pytest.mark.parametrize("low", [1, 8])
def test_a_declared_range_is_not_narrowed(low: int) -> None:
    model = OfFunction(FROZEN["roll"]).eval()
    inputs = bind_inputs(model, (torch.randn(2, 4, 8),))
    axes = {"x": {2: Dim("T", min=low, max=16)}}
    with pytest.raises(CaptureError, match=rf"T is declared from {low} to 16; a trace is right only for 8 <= T <= 9"):
        TorchModuleTracer(model, args=inputs, dynamic_axes=axes, capture="trace").trace()


FREE: dict[str, Callable[[Tensor], Tensor]] = {
    "reshape": lambda x: x.reshape(x.shape[0], -1, x.shape[2] * 2),
    "slices": lambda x: x[:, :, x.shape[2] // 2 :] * 2,
    "positions": lambda x: x + torch.arange(x.shape[2]) * 0.5,
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x).softmax(-1),
    "mean": lambda x: x.mean(2) + F.pad(x, (1, 1)).sum(2),
}


@pytest.mark.parametrize("function", FREE.values(), ids=FREE)
def test_sizes_that_stay_free_are_not_warned_of(function: Callable[[Tensor], Tensor]) -> None:
    assert frozen(OfFunction(function)) == []


class Whole(nn.Module):
    """A recurrent net over the dynamic axis, and a table in a cache."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.GRU(4, 4, batch_first=True)
        self.cache: dict[str, Tensor] = {}

    def forward(self, x: Tensor) -> Tensor:
        if "table" not in self.cache:
            self.cache["table"] = torch.arange(x.shape[2])
        return self.net(x.mT)[0] + self.cache["table"][:, None]


def test_a_decision_that_shows_only_where_two_sizes_are_large_is_frozen() -> None:
    def decided(x: Tensor) -> Tensor:
        wide = torch.relu(x) if len(x.split(5, 0)) > 1 else x[:, :, :3]
        return x.mean(1) if len(wide.split(31, 2)) > 1 else x.sum(1)

    assert len(frozen(OfFunction(decided), {0: "B", 2: "T"})) == 1


def test_what_a_trace_caches_is_not_there_in_the_next_one() -> None:
    model = Whole()
    assert frozen(model) == []
    assert model.cache == {}
