"""What the session says in the terminal about its cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest

from pytest_t2n.collect.cells import NO_ENGINE
from t2n_core.check.level import LEVELS
from t2n_core.check.stage import Status

if TYPE_CHECKING:
    from pytest_t2n.control.ledger import Ledger
    from pytest_t2n.records.counts import Kind

_NAMED = 20
"""Missing cells that are named; the rest is a number."""


def write_summary(reporter: Any, ledger: Ledger | None) -> None:
    """The section `t2n parity`, if there is anything to say and a terminal to say it to."""
    lines = summary_lines(ledger) if ledger is not None else []
    if reporter is not None:
        lines += _unselected(reporter.stats.get("skipped", ()))
    if reporter is None or not lines:
        return
    reporter.write_sep("=", "t2n parity")
    for line in lines:
        reporter.write_line(line)


def summary_lines(ledger: Ledger) -> list[str]:
    """Lines of the section; empty if there is nothing to say."""
    lines = []
    if ledger.tally.total:
        lines += _table(ledger)
    if ledger.missing:
        lines.append(f"{len(ledger.missing)} planned cells did not run: {ledger.why_missing}")
        lines += [f"  {nodeid}" for nodeid in ledger.missing[:_NAMED]]
        if len(ledger.missing) > _NAMED:
            lines.append(f"  … and {len(ledger.missing) - _NAMED} more")
    if ledger.tally.reused:
        lines.append(f"{ledger.tally.reused} results are of earlier sessions (--t2n-reuse)")
    lines += ledger.notes
    lines += [f"problem: {problem}" for problem in ledger.problems]
    if ledger.settings.report is not None and lines:
        lines.append(f"report: {ledger.settings.report / 'index.html'}")
    return lines


def _table(ledger: Ledger) -> list[str]:
    """Engine × status, and where the cells come from several files, file × engine."""
    counts = ledger.tally.counts
    shown = [status.value for status in Status if any(kind.status == status for kind in counts)]
    seen = dict.fromkeys(kind.engine for kind in counts)
    titles = [one for one in dict.fromkeys([*(engine.title for engine in ledger.run.engines), *seen]) if one in seen]
    rows = [("engine", *shown, "levels reached")]
    for title in titles:
        own, levels = Counter[str](), Counter[str]()
        for kind, count in counts.items():
            if kind.engine == title:
                own[kind.status] += count
                levels[kind.level] += count
        rows.append((title, *(str(own[status] or "") for status in shown), _levels(levels)))
    return _aligned(rows) + _suites(counts, titles)


def _suites(counts: Mapping[Kind, int], titles: list[str]) -> list[str]:
    """`3/4` where 3 of a file's 4 cells passed or were no surprise."""
    files = list(dict.fromkeys(kind.file for kind in counts))
    if len(files) < 2:
        return []
    totals, good = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for kind, count in counts.items():
        totals[kind.file, kind.engine] += count
        good[kind.file, kind.engine] += count * kind.good
    rows = [("suite", *titles, "")]
    for file in files:
        shares = [f"{good[file, title]}/{totals[file, title]}" if totals[file, title] else "" for title in titles]
        rows.append((PurePosixPath(file).stem.removeprefix("test_"), *shares, ""))
    return ["", *_aligned(rows)]


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(_cell(row, column, widths) for column in range(len(row))).rstrip() for row in rows]


def _cell(row: tuple[str, ...], column: int, widths: list[int]) -> str:
    text = row[column]
    return text.ljust(widths[column]) if column in (0, len(row) - 1) else text.rjust(widths[column])


def _levels(reached: Counter[str]) -> str:
    return ", ".join(f"{level.value} {reached[level.value]}" for level in LEVELS if reached[level.value])


def _unselected(skipped: Iterable[pytest.TestReport]) -> list[str]:
    """How to select engines, if tests were skipped for want of one."""
    count = sum(isinstance(one.longrepr, tuple) and NO_ENGINE in str(one.longrepr[2]) for one in skipped)
    if not count:
        return []
    ways = "--t2n-tract=0.21,0.23 (or t2n_tract in the ini file), --t2n-khronos"
    return [f"{count} test{'s' if count != 1 else ''} skipped: no engine selected; select with {ways}"]


__all__ = ["summary_lines", "write_summary"]
