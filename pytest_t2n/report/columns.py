"""Statistics of each engine version for the charts: levels reached, and run times."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from pytest_t2n.records.schema import CellLine, EngineLine
from pytest_t2n.report.matrix import Matrix, Row, is_surprise
from t2n_core.engine.tiers import NATIVE
from t2n_core.level import LEVELS


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds of stage `run` over the cases that passed in every version with times; quartiles by rank."""

    cases: int
    low: float
    middle: float
    high: float
    ratio: float | None
    """Median over the cases of this version's time divided by the previous version's; None for the first."""


@dataclass(frozen=True, slots=True)
class Column:
    """The statistics of one engine version."""

    engine: EngineLine
    total: int
    statuses: Counter[str]
    levels: Counter[str]
    surprises: int
    reused: int
    latency: Latency | None

    @property
    def segments(self) -> list[tuple[str, str, int]]:
        """Return the segments of the bar, from good to bad: kind (`level` or `status`), name, count."""
        levels = [("level", level.value, self.levels[level.value]) for level in LEVELS]
        without = self.statuses["pass"] - sum(self.levels.values())
        statuses = [("status", word, count) for word, count in self.statuses.items() if word != "pass"]
        return [segment for segment in (*levels, ("status", "pass", without), *sorted(statuses)) if segment[2] > 0]


class ColumnFold:
    """Counts the cells of each column, and stores the times of all, eight bytes per cell."""

    def __init__(self, matrix: Matrix) -> None:
        self._engines = matrix.columns
        count = len(matrix.columns)
        self._statuses = [Counter[str]() for _ in range(count)]
        self._levels = [Counter[str]() for _ in range(count)]
        self._surprises, self._expected, self._reused = ([0] * count for _ in range(3))
        self.weak = 0
        """Number of weak passes among the surprises."""
        self._times = array("d")
        """Seconds of the cells of each row with times, row by row; NaN for a cell without one."""
        self._timed = [False] * count
        self.authors: Counter[str] = Counter()
        """Number of mismatches by their author, where it is known."""
        self.is_measured = False
        """True if times come from `--t2n-benchmark`."""

    def add(self, row: Row) -> None:
        """Add a row."""
        for index, cell in enumerate(row.cells):
            if cell is None:
                continue
            self._statuses[index][cell.status] += 1
            if cell.status == "pass" and cell.level:
                self._levels[index][cell.level] += 1
            self._surprises[index] += is_surprise(cell)
            self.weak += cell.status == "weak" and is_surprise(cell)
            if cell.author:
                self.authors[cell.author] += 1
            self._expected[index] += bool(cell.expected)
            self._reused[index] += cell.reused
            self.is_measured = self.is_measured or cell.benchmark is not None
        times = [run_seconds(cell) for cell in row.cells]
        if any(time is not None for time in times):
            self._times.extend(math.nan if time is None else time for time in times)
            self._timed = [was_timed or time is not None for was_timed, time in zip(self._timed, times, strict=True)]

    @property
    def statuses(self) -> Counter[str]:
        """Return the number of all cells by status."""
        return sum(self._statuses, Counter[str]())

    @property
    def surprises(self) -> int:
        """Return the number of unexpected failures, and of weak passes without a written reason."""
        return sum(self._surprises)

    @property
    def expected(self) -> int:
        """Return the number of cells that are expected not to pass."""
        return sum(self._expected)

    @property
    def reused(self) -> int:
        """Return the number of results of earlier sessions."""
        return sum(self._reused)

    def columns(self) -> list[Column]:
        """Return the columns in the order of the matrix."""
        times = self._common_times()
        columns: list[Column] = []
        latest: dict[str, Sequence[float] | None] = {}
        for index, engine in enumerate(self._engines):
            seconds = times.get(index)
            before = latest.get(engine.exporter)
            latency = _latency(seconds, before) if seconds else None
            if engine.tier in ("", NATIVE):  # a tier is compared with its own release
                latest[engine.exporter] = seconds or before
            statuses, levels = self._statuses[index], self._levels[index]
            surprises, reused = self._surprises[index], self._reused[index]
            columns.append(Column(engine, statuses.total(), statuses, levels, surprises, reused, latency))
        return columns

    def _common_times(self) -> dict[int, Sequence[float]]:
        """Return times by column, of the same cases in each.

        Otherwise a version that fails at slow cases would look fast.
        """
        width = len(self._engines)
        # An engine of another kind, or without times, does not restrict the common cases.
        releases = [i for i, e in enumerate(self._engines) if e.target == "tract"] or list(range(width))
        used = [i for i in releases if self._timed[i]]
        times_of = {index: array("d") for index in used}
        for start in range(0, len(self._times), width or 1):
            line = self._times[start : start + width]
            if not any(math.isnan(line[index]) for index in used):
                for index in used:
                    times_of[index].append(line[index])
        return {index: values for index, values in times_of.items() if values}


def run_seconds(cell: CellLine | None) -> float | None:
    """Return a cell's seconds for one run if measured, else for all samples; None if it did not run in this session."""
    if cell is None or cell.status != "pass" or cell.reused:
        return None
    if cell.benchmark is not None:
        return median(cell.benchmark.run) / cell.benchmark.runs
    return cell.times.get("run")


def _latency(seconds: Sequence[float], before: Sequence[float] | None) -> Latency:
    ordered = sorted(seconds)
    low, high = (ordered[math.floor(share * (len(ordered) - 1))] for share in (0.25, 0.75))
    ratios = [now / then for now, then in zip(seconds, before, strict=True) if then > 0] if before else []
    return Latency(len(seconds), low, median(seconds), high, median(ratios) if ratios else None)
