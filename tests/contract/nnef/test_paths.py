"""Nets that a release gets wrong, or dies of, on one path alone, are right on all of them as they are written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.engine.paths import EnginePath
from tests.releases import LINES

DECLUTTER, OPTIMISE_ONLY, FIXED = EnginePath.DECLUTTER, EnginePath.OPTIMISE_ONLY, EnginePath.FIXED_SYMBOLS
GENERATOR = torch.Generator().manual_seed(7)


def randn(*shape: int) -> Tensor:
    return torch.randn(shape, generator=GENERATOR)


class Net(nn.Module):
    """A function of the inputs, with recurrent nets and layers at hand."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.function = function
        self.lstm, self.gru, self.deep = nn.LSTM(3, 7), nn.GRU(3, 7), nn.LSTM(3, 7, 2)
        self.head, self.wide, self.points = nn.Linear(7, 5), nn.Linear(9, 12), nn.Conv2d(9, 9, 1)
        self.both = nn.GRU(4, 5, 2, bidirectional=True, batch_first=True)
        self.encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.strided = nn.Sequential(nn.Conv1d(4, 6, 3, 2), nn.GELU(), nn.Conv1d(6, 6, 3, 2))

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(self, *inputs)


class Case(NamedTuple):
    function: Callable[..., Any]
    inputs: tuple[Tensor, ...]
    axes: dict[int, str] | None = None
    """Axis -> symbol, of all inputs."""


def _flat_and_state(net: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    y, state = net(x)
    last = state[0] if isinstance(state, tuple) else state
    return y.reshape(-1, 7), last[-1]


def _steps_from_zeros(x: Tensor) -> Tensor:
    """Return a recurrence over the second axis, whose first factor the initial state of zeros takes away."""
    factors, terms = x.exp(), x.sin()
    state = torch.zeros(x.shape[0], x.shape[2])
    for step in range(x.shape[1]):
        state = factors[:, step] * state + terms[:, step]
    return state


def _products_of_steps(x: Tensor) -> Tensor:
    """Return what a product reads of a recurrence from zeros after each of its steps."""
    factors, terms, read = x.chunk(3, 2)
    state, products = torch.zeros(x.shape[0], 5, x.shape[2] // 3), []
    for step in range(x.shape[1]):
        state = factors[:, step, None].exp() * state + terms[:, step, None] * torch.arange(1.0, 6.0)[:, None]
        products.append(state @ read[:, step, :, None])
    return torch.stack(products)


X, Y = randn(3, 9), randn(3, 9)
ROWS, FREE = {0: "N"}, {0: "B", 1: "T"}
CASES: dict[str, Case] = {
    "slices without the first part": Case(lambda m, x, y: ((x + y)[:, 2:4], (x + y)[:, 5:8]), (X, Y)),
    "slices of an input": Case(lambda m, x, y: (x[:, 2:4], x[:, 5:8], y * 2), (X, Y), ROWS),
    "slices after other operations": Case(lambda m, x, y: (x.tanh()[:, 2:4], x.exp()[:, 5:8], y * 2), (X, Y), ROWS),
    "slices of booleans": Case(lambda m, x, y: ((x > y)[:, :4], (x > y)[:, 5:8]), (X, Y)),
    "slices of transposed values": Case(
        lambda m, x, y: ((x * y).mT[2:4].relu(), (x * y).unsqueeze(0)[:, :, 5:8] * 2), (X, Y), ROWS
    ),
    "steps without the first": Case(lambda m, x: sum(m.wide(x)[i].tanh() for i in range(1, 5)), (randn(5, 9),)),
    "a first step that meets zeros": Case(lambda m, x: _steps_from_zeros(m.wide(x)), (randn(2, 5, 9),), {0: "B"}),
    "products with a state from zeros": Case(lambda m, x: _products_of_steps(x), (randn(2, 4, 9),), {0: "B"}),
    "slices of two axes": Case(
        lambda m, x, y: torch.stack([part[:, 2:6].exp() for part in (x + y).chunk(2)]), (randn(14, 9), randn(14, 9))
    ),
    "lstm, flat": Case(lambda m, x: _flat_and_state(m.lstm, x), (randn(6, 4, 3),)),
    "gru, flat": Case(lambda m, x: _flat_and_state(m.gru, x), (randn(6, 4, 3),)),
    "two layers, flat": Case(lambda m, x: _flat_and_state(m.deep, x), (randn(6, 4, 3),)),
    "lstm, flat, to a linear layer": Case(lambda m, x: m.head(m.lstm(x)[0].reshape(-1, 7)), (randn(6, 4, 3),)),
    "lstm, an axis inserted, to a linear layer": Case(
        lambda m, x: m.head(m.lstm(x)[0].reshape(6, 4, 1, 7)), (randn(6, 4, 3),)
    ),
    "windows of one element": Case(
        lambda m, x: m.wide((m.points(x) + x).permute(0, 2, 3, 1).reshape(-1, 2, 1, 3, 1, 9).flatten(1, 3)),
        (randn(4, 9, 2, 3),),
        {0: "B"},
    ),
    "lstm of free sizes": Case(lambda m, x: m.lstm(x)[0], (randn(6, 4, 3),), {0: "T", 1: "B"}),
    "a multiple of four": Case(
        lambda m, x: F.pad(x, (0, 0, 0, -x.shape[1] % 4)).reshape(x.shape[0], -1, 4, 4).mean(2),
        (randn(2, 9, 4),),
        {0: "B", 1: "T"},
    ),
    "a causal mask": Case(
        lambda m, x: (x @ x.mT).masked_fill(torch.ones(x.shape[1], x.shape[1]).triu(1).bool(), -1e9).softmax(-1),
        (randn(2, 9, 4),),
        {0: "B", 1: "T"},
    ),
    "both directions": Case(lambda m, x: m.both(x), (randn(2, 9, 4),), FREE),
    "a batch computed from sizes": Case(lambda m, x: m.both(x.reshape(-1, 1, 4)), (randn(2, 9, 4),), {0: "B", 1: "T"}),
    "a transformer layer": Case(lambda m, x: m.encoder(x), (randn(2, 9, 8),), FREE),
    "half of the steps": Case(lambda m, x: x[:, : x.shape[1] // 2].sum(1), (randn(2, 9, 4),), FREE),
    "a shift by one step": Case(lambda m, x: torch.cat([x[:, 1:], x[:, :1]], 1), (randn(2, 9, 4),), FREE),
    "positions": Case(lambda m, x: x + torch.arange(x.shape[1])[None, :, None] * 0.1, (randn(2, 9, 4),), FREE),
    "sums of all steps before": Case(lambda m, x: x.cumsum(1), (randn(2, 9, 4),), FREE),
    "overlapping windows": Case(lambda m, x: x.unfold(1, 3, 2).mean(-1), (randn(2, 9, 4),), FREE),
    "adaptive pooling": Case(lambda m, x: F.adaptive_avg_pool1d(x.mT, 3), (randn(2, 9, 4),), FREE),
    "interpolation": Case(lambda m, x: F.interpolate(x.mT, scale_factor=2.0, mode="linear"), (randn(2, 9, 4),), FREE),
    "the largest three": Case(lambda m, x: x.topk(3, 1)[0], (randn(2, 9, 4),), FREE),
    "convolutions with strides": Case(lambda m, x: m.strided(x.mT), (randn(2, 19, 4),), FREE),
    "a constant NaN": Case(lambda m, x: torch.where(x > 0, x, float("nan")), (X,), ROWS),
}


@pytest.mark.parametrize("release", LINES)
@pytest.mark.parametrize("name", list(CASES))
def test_every_path_is_right(name: str, release: str, tmp_path: Path) -> None:
    case = CASES[name]
    names = ["x", "y"][: len(case.inputs)]
    axes = None if case.axes is None else {input_name: dict(case.axes) for input_name in names}
    export = ModelExport(Net(case.function).eval(), case.inputs, input_names=names, dynamic_axes=axes)
    outcome = export.to(TractNNEF(release, check_io=False), tmp_path / "model.nnef.tar").check_parity("approximate")
    assert outcome.passed, outcome.describe()
    fixed = [FIXED] if axes else []
    several = [OPTIMISE_ONLY] if release < "0.23" else []
    assert list(outcome.paths) == [DECLUTTER, *several, *fixed] or "failed_paths" in outcome.facts
