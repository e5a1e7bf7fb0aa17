"""Times of export, loading and one run for `--t2n-benchmark`, passed to pytest-benchmark.

They are measured in the process that runs the cell and stored in its record. pytest-benchmark receives them on the
controller, so that its table, JSON, storage and comparison also work under xdist, where its own fixture is disabled.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_t2n.records.from_outcome import BENCHMARK, REUSED
from pytest_t2n.records.schema import CellLine

if TYPE_CHECKING:
    from t2n_core.export.result import ExportResult
    from t2n_core.parity.outcome import Outcome

_ROUND = 0.02
"""Least seconds of a round of runs, since a single run may take microseconds."""
_MOST_RUNS = 1000
_EXPORT_STAGES = ("capture", "lower", "write")
_LOAD_STAGES = ("load", "optimise")


@dataclass(slots=True)
class _Source:
    """The attributes that pytest-benchmark reads from its fixture."""

    name: str
    fullname: str
    group: str
    params: dict[str, str]
    extra_info: dict[str, Any] = field(default_factory=dict)
    param: str | None = None
    cprofile_stats: None = None
    has_error: bool = False


def with_times(outcome: Outcome, result: ExportResult, timeout: float, rounds: int) -> Outcome:
    """Return the outcome of a cell that passed in this session with its times, if the engine reports times."""
    if not outcome.passed or outcome.facts.get(REUSED):
        return outcome
    benchmark = measure(result, outcome, timeout, rounds)
    return outcome if benchmark is None else replace(outcome, facts={**outcome.facts, BENCHMARK: benchmark})


def measure(result: ExportResult, outcome: Outcome, timeout: float, rounds: int) -> dict[str, Any] | None:
    """Return seconds per round of a cell that passed, on its first inputs; None if the engine reports no times."""
    times = outcome.times
    if "run" not in times:
        return None
    inputs = result.samples[0].inputs
    engine = result.target.engine()
    single_run = engine.run(result.archive, [inputs], timeout=timeout)  # the check's runs may have waited for others
    once = min(times["run"] / max(len(outcome.sizes), 1), single_run.times.get("run", math.inf))
    runs = min(max(math.ceil(_ROUND / max(once, 1e-9)), 1), _MOST_RUNS)
    load: list[float] = []
    run: list[float] = []
    for _ in range(rounds):
        reply = engine.run(result.archive, [inputs] * runs, timeout=timeout)
        if reply.status != "ok" or "run" not in reply.times:
            return None  # it passed before: a resource of the machine is exhausted
        load.append(sum(reply.times.get(stage, 0.0) for stage in _LOAD_STAGES))
        run.append(reply.times["run"])
    export = sum(result.times.get(stage, 0.0) for stage in _EXPORT_STAGES)
    return {"export": [export], "load": load, "run": run, "runs": runs}


def add_benchmarks(config: pytest.Config, cells: Iterable[CellLine]) -> int:
    """Pass the cells' times to pytest-benchmark before it saves and compares; return how many cells have some."""
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
        for phase, seconds, iterations in (
            ("export", line.export, 1),
            ("load", line.load, 1),
            ("run", line.run, line.runs),
        ):
            source = _Source(
                f"{phase} {case} {cell.engine}",
                f"{cell.nodeid}[{phase}]",
                f"{phase} {case}",
                {"engine": cell.engine, "what": phase},
                {"case": cell.case, "engine": cell.engine, "indicative": shared},
            )
            stats = Metadata(source, iterations=iterations, options={"rounds": len(seconds)})
            for value in seconds:
                stats.update(value)
            session.benchmarks.append(stats)
    return count


def is_shared(config: pytest.Config) -> bool:
    """Return whether several workers share the processors, so that times are only indicative."""
    return bool(config.getoption("numprocesses", None)) or config.getoption("dist", "no") != "no"
