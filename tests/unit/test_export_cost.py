"""What the export of a recurrent net costs, in calls and statements, which no load on the machine changes."""

from __future__ import annotations

import cProfile
import gc
import pstats
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from t2n_core import ModelExport, TractNNEF
from tests.releases import NEWEST

NETS = {"lstm": lambda: nn.LSTM(5, 7), "gru": lambda: nn.GRU(5, 7)}


def calls(work: Callable[[], object]) -> int:
    """Return how many functions are called, those that end the objects of earlier tests not among them."""
    gc.collect()
    profile = cProfile.Profile()
    profile.runcall(work)
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


def export_of(kind: str, steps: int) -> ModelExport:
    torch.manual_seed(steps)
    return ModelExport(NETS[kind]().eval(), (torch.randn(steps, 4, 5),))


@pytest.fixture(params=sorted(NETS))
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A kind of net that was exported once: imports and caches are not what is counted."""
    export_of(request.param, 3).to(TractNNEF(NEWEST, check_io=False), tmp_path / "first")
    return str(request.param)


def test_an_export_costs_less_than_its_capture(kind: str, tmp_path: Path) -> None:
    export = export_of(kind, 10)
    capture = calls(lambda: export.captured)
    rest = calls(lambda: export.to(TractNNEF(NEWEST, check_io=False), tmp_path / "net"))
    assert rest < capture


def test_neither_capture_nor_export_grows_with_the_length(kind: str) -> None:
    target = TractNNEF(NEWEST, check_io=False)
    # lengths of no other test: PyTorch keeps the shapes of operators that it has seen
    short, long = export_of(kind, 12), export_of(kind, 1000)
    counts = [calls(lambda of=of: of.captured) for of in (short, long)]  # type: ignore[misc]
    assert counts[1] == pytest.approx(counts[0], rel=0.02)
    assert len(short.captured.graph.op_nodes) == len(long.captured.graph.op_nodes)
    assert len(short.lower(target).operations) == len(long.lower(target).operations)


def test_the_capture_of_batch_norms_costs_what_pytorch_costs() -> None:
    """Each has a counter, a tensor of one integer, which is no size that the model computes with."""
    layers = [layer for _ in range(3) for layer in (nn.Conv1d(5, 5, 3), nn.BatchNorm1d(5))]
    model, x = nn.Sequential(*layers).eval(), torch.randn(2, 5, 40)
    counts = []
    for _ in range(2):  # the first time imports are counted
        ours = calls(lambda: ModelExport(model, (x,)).captured)
        counts = [ours, calls(lambda: torch.export.export(model, (x,), strict=False))]
    assert counts[0] < 1.1 * counts[1]
