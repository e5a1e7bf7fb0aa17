"""Isolated checks of small nets: how many one core does in a second, and what further versions of a case cost."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from conformance.lab.machine import VERSIONS, cpu_of_children
from conformance.lab.timing import Stopwatch
from t2n_core import ModelExport, TractNNEF
from t2n_core.engine.pool import close_all

CHECKS = 200
_CASES = 5

SMALL: Mapping[str, Callable[[], tuple[nn.Module, torch.Tensor]]] = {
    "linear": lambda: (nn.Linear(5, 7), torch.randn(3, 5)),
    "conv, norm, relu": lambda: (
        nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()), torch.randn(1, 3, 12, 10)
    ),
    "LSTM": lambda: (nn.LSTM(5, 7), torch.randn(11, 1, 5)),
    "transformer layer": lambda: (nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), torch.randn(1, 9, 16)),
}  # fmt: skip


def measure(folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Rates on one version, and the time of a case on one version and on five. The processes share one core."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        rates = {}
        for name in SMALL:
            say(f"checks of {name}")
            rates[name] = _rate(name, folder)
        say(f"cases on {len(VERSIONS)} versions")
        return {"rates": rates, "versions": {name: _versions(name, folder) for name in SMALL}}
    finally:
        os.sched_setaffinity(0, allowed)


def _export(name: str) -> ModelExport:
    torch.manual_seed(0)
    model, x = SMALL[name]()
    return ModelExport(model.eval(), (x,))


def _rate(name: str, folder: Path) -> dict[str, float]:
    """Return the checks per second: load, optimise and run in a separate process, then compare."""
    result = _export(name).to(TractNNEF(VERSIONS[-1], check_io=False), folder / "checked.tar")
    result.assert_parity("approximate")  # starts the worker, computes the reference
    watch = Stopwatch()
    for _ in range(CHECKS):
        result.assert_parity("approximate")
    seconds, ours = watch.wall, watch.cpu
    inside = _cpu_of_engines(result)
    return {
        "wall_per_s": CHECKS / seconds,
        "cpu_per_s": CHECKS / (ours + inside),
        "ours_ms": 1e3 * ours / CHECKS,
        "engine_ms": 1e3 * inside / CHECKS,
    }


def _cpu_of_engines(result: Any) -> float:
    """CPU seconds of the worker and its children for CHECKS checks: a worker with as many more is compared to one."""
    spent = []
    for more in (0, CHECKS):
        close_all()
        before = cpu_of_children()
        for _ in range(1 + more):
            result.assert_parity("approximate")
        close_all()
        spent.append(cpu_of_children() - before)
    return spent[1] - spent[0]


def _versions(name: str, folder: Path) -> dict[str, float]:
    """Wall milliseconds of a new case: its capture and reference, and its first and further versions, medians."""
    for version in VERSIONS:
        _case(name, (version,), folder)  # starts the workers
    single = statistics.median(_case(name, VERSIONS[-1:], folder) for _ in range(_CASES))
    five = statistics.median(_case(name, VERSIONS, folder) for _ in range(_CASES))
    return {"one_ms": single, "five_ms": five, "further_ms": (five - single) / (len(VERSIONS) - 1)}


def _case(name: str, versions: tuple[str, ...], folder: Path) -> float:
    export = _export(name)
    watch = Stopwatch()
    for version in versions:
        export.to(TractNNEF(version, check_io=False), folder / f"{version}.tar").assert_parity("approximate")
    return 1e3 * watch.wall
