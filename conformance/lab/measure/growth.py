"""CPU time of an export against the number of nodes, weights and dynamic axes; the floor is torch.export alone."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from conformance.lab.machine import VERSIONS
from conformance.lab.timing import Stopwatch
from t2n_core import ModelExport, TractNNEF

ROUNDS = 3
_SHORT = 2.0
"""Seconds: what takes longer runs once."""


class Nodes(nn.Module):
    """`count` operators one after the other, in one module."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(self.count // 2):
            x = torch.tanh(x * 0.5)
        return x


class Weights(nn.Module):
    """`count` weights, each used by one operator."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.factors = nn.ParameterList(torch.randn(1, 5) for _ in range(count))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for factor in self.factors:
            x = x * factor
        return x


class Axes(nn.Module):
    """One dynamic axis for each of the inputs, all concatenated."""

    def forward(self, *xs: torch.Tensor) -> torch.Tensor:
        return torch.cat([torch.tanh(x) for x in xs], 0)


@dataclass(frozen=True, slots=True)
class Growth:
    """One curve."""

    counts: tuple[int, ...]
    build: Callable[[int], nn.Module]
    dynamic: bool = False

    def inputs(self, count: int) -> tuple[torch.Tensor, ...]:
        torch.manual_seed(count)
        return tuple(torch.randn(7 + i, 5) for i in range(count if self.dynamic else 1))

    def axes(self, count: int) -> dict[str, dict[int, str]] | None:
        return {f"x{i}": {0: f"S{i}"} for i in range(count)} if self.dynamic else None


CURVES: Mapping[str, Growth] = {
    "nodes": Growth((100, 300, 1000, 3000, 10_000), Nodes),
    "weights": Growth((100, 300, 1000, 3000), Weights),
    "dynamic axes": Growth((2, 8, 32, 128), lambda _: Axes(), dynamic=True),
}


def measure(folder: Path, say: Callable[[str], None], curves: Mapping[str, Growth] = CURVES) -> dict[str, Any]:
    """{what grows: {count: {ours, floor: CPU seconds}}}, each the median of a few, in turns."""
    medians: dict[str, Any] = {}
    for name, growth in curves.items():
        medians[name] = {}
        _turn(growth, growth.counts[0], folder)  # what is read or made once per process
        for count in growth.counts:
            say(f"export with {count} {name}")
            turns = [_turn(growth, count, folder)]
            while turns[0]["ours"] < _SHORT and len(turns) < ROUNDS:
                turns.append(_turn(growth, count, folder))
            medians[name][count] = {who: statistics.median(turn[who] for turn in turns) for who in turns[0]}
    return medians


def _turn(growth: Growth, count: int, folder: Path) -> dict[str, float]:
    model, inputs, axes = growth.build(count).eval(), growth.inputs(count), growth.axes(count)
    names = [f"x{i}" for i in range(len(inputs))]

    def ours() -> None:
        export = ModelExport(model, inputs, input_names=names, dynamic_axes=axes)
        export.to(TractNNEF(VERSIONS[-1], check_io=False), folder / "growth.tar")

    def floor() -> None:
        free = {0: torch.export.Dim.DYNAMIC} if growth.dynamic else None
        shapes = {"xs": tuple(free for _ in inputs)} if growth.dynamic else None
        torch.export.export(model, inputs, dynamic_shapes=shapes, strict=False)

    return {"ours": _cpu_seconds(ours), "floor": _cpu_seconds(floor)}


def _cpu_seconds(work: Callable[[], None]) -> float:
    gc.collect()
    watch = Stopwatch()
    work()
    return watch.cpu
