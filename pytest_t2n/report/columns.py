"""Numbers of each engine version for the charts: levels reached, and time to run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from pytest_t2n.records.schema import CellLine, EngineLine
from pytest_t2n.report.matrix import Matrix, count_statuses, is_surprise
from t2n_core.check.level import LEVELS
from t2n_core.engine.tract.tiers import NATIVE


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds of stage `run` over the cases that passed in every version with times; quartiles by rank."""

    cases: int
    low: float
    middle: float
    high: float
    ratio: float | None
    """Median over the cases of this version's time divided by that of the version before; None for the first."""


@dataclass(frozen=True, slots=True)
class Column:
    """The numbers of one engine version."""

    engine: EngineLine
    total: int
    statuses: Counter[str]
    levels: Counter[str]
    surprises: int
    reused: int
    latency: Latency | None

    @property
    def segments(self) -> list[tuple[str, str, int]]:
        """Return the segments of the bar, from good to bad: kind (`level` or `status`), word, count."""
        levels = [("level", level.value, self.levels[level.value]) for level in LEVELS]
        without = self.statuses["pass"] - sum(self.levels.values())
        statuses = [("status", word, count) for word, count in self.statuses.items() if word != "pass"]
        return [one for one in (*levels, ("status", "pass", without), *sorted(statuses)) if one[2] > 0]


def columns_of(matrix: Matrix) -> list[Column]:
    """Return the columns in the order of the matrix."""
    times = _common_times(matrix)
    found: list[Column] = []
    before: Sequence[float] | None = None
    for index, engine in enumerate(matrix.columns):
        cells = matrix.column(index)
        levels = Counter(cell.level for cell in cells if cell.status == "pass" and cell.level)
        own = times.get(index)
        latency = _latency(own, before) if own else None
        if engine.tier in ("", NATIVE):  # a tier is compared with its own release
            before = own or before
        surprises, reused = sum(map(is_surprise, cells)), sum(cell.reused for cell in cells)
        found.append(Column(engine, len(cells), count_statuses(cells), Counter(levels), surprises, reused, latency))
    return found


def run_seconds(cell: CellLine | None) -> float | None:
    """Return a cell's seconds for one run if measured, else for all samples; None if it did not run in this session."""
    if cell is None or cell.status != "pass" or cell.reused:
        return None
    if cell.benchmark is not None:
        return median(cell.benchmark.run) / cell.benchmark.runs
    return cell.times.get("run")


def is_measured(matrix: Matrix) -> bool:
    """Return True if the times come from `--t2n-benchmark`."""
    return any(cell.benchmark is not None for cell in matrix.cells)


def _common_times(matrix: Matrix) -> dict[int, list[float]]:
    """Return times by column, of the same cases in each: a version that fails at slow cases would else look fast."""
    table = [[run_seconds(cell) for cell in row.cells] for row in matrix.rows]
    # An engine of another kind, or without times, does not decide which cases are common.
    releases = [i for i, e in enumerate(matrix.columns) if e.target == "tract"] or list(range(len(matrix.columns)))
    used = [i for i in releases if any(line[i] is not None for line in table)]
    common = [line for line in table if all(line[i] is not None for i in used)]
    found = {}
    for index in used:
        values = [value for line in common if (value := line[index]) is not None]
        if values:
            found[index] = values
    return found


def _latency(own: Sequence[float], before: Sequence[float] | None) -> Latency:
    ordered = sorted(own)
    low, high = (ordered[math.floor(share * (len(ordered) - 1))] for share in (0.25, 0.75))
    ratios = [now / then for now, then in zip(own, before, strict=True) if then > 0] if before else []
    return Latency(len(own), low, median(own), high, median(ratios) if ratios else None)


__all__ = ["Column", "Latency", "columns_of", "is_measured", "run_seconds"]
