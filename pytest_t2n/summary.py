"""What the session says in the terminal about its cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest

from pytest_t2n.cells import NO_ENGINE
from t2n_core.check.level import LEVELS
from t2n_core.check.stage import Status

if TYPE_CHECKING:
    from pytest_t2n.ledger import Ledger
    from pytest_t2n.records import CellLine

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
    if ledger.cells:
        lines += _table(ledger)
    if ledger.missing:
        lines.append(f"{len(ledger.missing)} planned cells did not run: {_message(ledger.missing[0])}")
        lines += [f"  {line.nodeid}" for line in ledger.missing[:_NAMED]]
        if len(ledger.missing) > _NAMED:
            lines.append(f"  … and {len(ledger.missing) - _NAMED} more")
    reused = sum(cell.reused for cell in ledger.cells.values())
    if reused:
        lines.append(f"{reused} results are of earlier sessions (--t2n-reuse)")
    lines += ledger.notes
    lines += [f"problem: {problem}" for problem in ledger.problems]
    if ledger.settings.report is not None and lines:
        lines.append(f"report: {ledger.settings.report / 'index.html'}")
    return lines


def _table(ledger: Ledger) -> list[str]:
    """Engine × status, and where the cells come from several files, file × engine."""
    cells = list(ledger.cells.values())
    shown = [status.value for status in Status if any(cell.status == status for cell in cells)]
    titles = list(dict.fromkeys([*(engine.title for engine in ledger.run.engines), *(cell.engine for cell in cells)]))
    titles = [title for title in titles if any(cell.engine == title for cell in cells)]
    rows = [("engine", *shown, "levels reached")]
    for title in titles:
        own = [cell for cell in cells if cell.engine == title]
        counts = Counter(str(cell.status) for cell in own)
        rows.append((title, *(str(counts.get(status) or "") for status in shown), _levels(own)))
    return _aligned(rows) + _suites(cells, titles)


def _suites(cells: list[CellLine], titles: list[str]) -> list[str]:
    """`3/4` where 3 of a file's 4 cells passed or were no surprise."""
    files = list(dict.fromkeys(cell.nodeid.partition("::")[0] for cell in cells))
    if len(files) < 2:
        return []
    rows = [("suite", *titles, "")]
    for file in files:
        counts = []
        for title in titles:
            own = [cell for cell in cells if cell.engine == title and cell.nodeid.partition("::")[0] == file]
            good = sum(cell.status == "pass" or bool(cell.expected) for cell in own)
            counts.append(f"{good}/{len(own)}" if own else "")
        rows.append((PurePosixPath(file).stem.removeprefix("test_"), *counts, ""))
    return ["", *_aligned(rows)]


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(_cell(row, column, widths) for column in range(len(row))).rstrip() for row in rows]


def _cell(row: tuple[str, ...], column: int, widths: list[int]) -> str:
    text = row[column]
    return text.ljust(widths[column]) if column in (0, len(row) - 1) else text.rjust(widths[column])


def _levels(cells: list[CellLine]) -> str:
    reached = Counter(cell.level for cell in cells if cell.level)
    return ", ".join(f"{level.value} {reached[level.value]}" for level in LEVELS if reached[level.value])


def _message(line: CellLine) -> str:
    return line.error.message if line.error else ""


def _unselected(skipped: Iterable[pytest.TestReport]) -> list[str]:
    """How to select engines, if tests were skipped for want of one."""
    count = sum(isinstance(one.longrepr, tuple) and NO_ENGINE in str(one.longrepr[2]) for one in skipped)
    if not count:
        return []
    ways = "--t2n-tract=0.21,0.23 (or t2n_tract in the ini file), --t2n-khronos"
    return [f"{count} test{'s' if count != 1 else ''} skipped: no engine selected; select with {ways}"]


__all__ = ["summary_lines", "write_summary"]
