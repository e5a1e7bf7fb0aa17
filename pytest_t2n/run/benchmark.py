"""`--t2n-benchmark`: time of export, of loading and of one run, handed to pytest-benchmark.

Measured where the cell runs and kept in its record; what pytest-benchmark makes of it (table, JSON, storage,
comparison) is made on the controller, so that it works under xdist too, where its own fixture is switched off.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_t2n.records.schema import CellLine
    from t2n_core.check.outcome import Outcome
    from t2n_core.export import ExportResult

FACT = "t2n_benchmark"
"""A fact of an outcome on its way to the record's own field."""
_ROUND = 0.02
"""Seconds that a round of runs shall take at least: a run may take microseconds."""
_MOST_RUNS = 1000
_EXPORT_STAGES = ("capture", "lower", "write")
_LOAD_STAGES = ("load", "optimise")


@dataclass(slots=True)
class _Source:
    """What pytest-benchmark asks of its fixture."""

    name: str
    fullname: str
    group: str
    params: dict[str, str]
    extra_info: dict[str, Any] = field(default_factory=dict)
    param: str | None = None
    cprofile_stats: None = None
    has_error: bool = False


def measure(result: ExportResult, outcome: Outcome, timeout: float, rounds: int) -> dict[str, Any] | None:
    """Seconds per round of a cell that passed, by its first inputs; None where the engine tells no times."""
    times = outcome.times
    if "run" not in times:
        return None
    inputs = result.export.samples[0].inputs
    engine = result.target.engine()
    once = times["run"] / max(len(outcome.sizes), 1)
    runs = min(max(math.ceil(_ROUND / max(once, 1e-9)), 1), _MOST_RUNS)
    load: list[float] = []
    run: list[float] = []
    for _ in range(rounds):
        reply = engine.run(result.archive, [inputs] * runs, timeout=timeout)
        if reply.status != "ok" or "run" not in reply.times:
            return None  # it passed a moment ago: the machine is out of something
        load.append(sum(reply.times.get(stage, 0.0) for stage in _LOAD_STAGES))
        run.append(reply.times["run"])
    export = sum(result.times.get(stage, 0.0) for stage in _EXPORT_STAGES)
    return {"export": [export], "load": load, "run": run, "runs": runs}


def check_available(config: pytest.Config) -> None:
    """Raises pytest.UsageError where pytest-benchmark is switched off."""
    if not config.pluginmanager.hasplugin("benchmark"):
        raise pytest.UsageError("--t2n-benchmark: the plugin pytest-benchmark is not loaded (-p no:benchmark)")


def add_benchmarks(config: pytest.Config, cells: Iterable[CellLine]) -> int:
    """Hand the cells' times to pytest-benchmark before it saves and compares; gives how many cells have some."""
    from pytest_benchmark.stats import Metadata

    session = config._benchmarksession  # type: ignore[attr-defined]
    shared = is_shared(config)
    count = 0
    for cell in cells:
        line = cell.benchmark
        if line is None:
            continue
        count += 1
        case = cell.case.rpartition("::")[2]
        for what, seconds, iterations in (
            ("export", line.export, 1),
            ("load", line.load, 1),
            ("run", line.run, line.runs),
        ):
            source = _Source(
                f"{what} {case} {cell.engine}",
                f"{cell.nodeid}[{what}]",
                f"{what} {case}",
                {"engine": cell.engine, "what": what},
                {"case": cell.case, "engine": cell.engine, "indicative": shared},
            )
            stats = Metadata(source, iterations=iterations, options={"rounds": len(seconds)})
            for value in seconds:
                stats.update(value)
            session.benchmarks.append(stats)
    return count


def is_shared(config: pytest.Config) -> bool:
    """Several workers share the processors, so that times are indicative only."""
    return bool(config.getoption("numprocesses", None)) or config.getoption("dist", "no") != "no"


__all__ = ["FACT", "add_benchmarks", "check_available", "is_shared", "measure"]
