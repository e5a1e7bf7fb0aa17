"""The section `t2n parity` of the terminal's summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest

from pytest_t2n.collect.cells import NO_ENGINE
from pytest_t2n.records.counts import CellCounts, CountKey, authors_text
from t2n_core.level import LEVELS
from t2n_core.parity.stage import Status
from t2n_core.text import visible

if TYPE_CHECKING:
    from pytest_t2n.control.ledger import Ledger

_NAMED = 20
"""Most cells in a list; the others are counted."""
_WIDEST = 10_000
"""Columns of a table: terminals wrap wider lines, and nothing is cut off."""


def write_summary(reporter: Any, ledger: Ledger | None) -> None:
    """Write the section, if there is anything to report and a terminal reporter."""
    lines = summary_lines(ledger) if ledger is not None else []
    if reporter is not None:
        lines += _how_to_select(reporter.stats.get("skipped", ()))
    if reporter is None or not lines:
        return
    reporter.write_sep("=", "t2n parity")
    for line in lines:
        reporter.write_line(visible(line))


def summary_lines(ledger: Ledger) -> list[str]:
    """Return the lines of the section; empty if there is nothing to report."""
    lines = []
    if ledger.counts.total:
        lines += _table(ledger)
    if authors := authors_text(ledger.counts.authors):
        lines.append(f"by the definitions of the operators: {authors}")
    if ledger.missing:
        lines.append(f"{len(ledger.missing)} planned cells did not run: {ledger.why_missing}")
        lines += _first_names(ledger.missing)
    if ledger.unmade:
        lines.append(f"not run, as no engine of this session fits: {len(ledger.unmade)} cells that markers require")
        lines += _first_names(ledger.unmade)
    lines += _weak(ledger.counts, strict=ledger.settings.strict)
    lines += _not_finite(ledger.counts)
    if ledger.counts.reused:
        lines.append(f"{ledger.counts.reused} results are from earlier sessions (--t2n-reuse)")
    lines += ledger.notes
    lines += [f"problem: {problem}" for problem in ledger.problems]
    if ledger.settings.report is not None and lines:
        lines.append(f"report: {ledger.settings.report / 'index.html'}")
    return lines


def _first_names(cells: Sequence[str]) -> list[str]:
    """Return a line for each of the first cells, and how many more there are."""
    lines = [f"  {cell}" for cell in cells[:_NAMED]]
    return [*lines, f"  … and {len(cells) - _NAMED} more"] if len(cells) > _NAMED else lines


def _weak(counts: CellCounts, *, strict: bool) -> list[str]:
    """Return the weak cells with their reasons, below the counts of the page, which pytest's own do not show."""
    if not counts.weak:
        return []
    number, unexpected = counts.weak_in_all, counts.surprises
    counted = "failed" if strict else "passed"
    lines = [
        f"{unexpected} cells unexpected: {unexpected - number} failed, {number} weak, which pytest counts as {counted}",
        f"{number} weak: the outputs agree, but prove little; with --t2n-strict these tests fail",
    ]
    return lines + _with_reasons(counts.weak, number)


def _not_finite(counts: CellCounts) -> list[str]:
    """Return the cells that pass with NaN or infinities, with their share."""
    if not counts.not_finite:
        return []
    number = counts.not_finite_in_all
    return [
        f"{number} pass with NaN or infinities in their outputs, of which only the positions are compared",
        *_with_reasons(counts.not_finite, number),
    ]


def _with_reasons(listed_cells: Sequence[tuple[str, str]], number: int) -> list[str]:
    """Return a line for each listed cell, and how many more there are."""
    lines = [f"  {nodeid}: {reason}" for nodeid, reason in listed_cells]
    return [*lines, f"  … and {number - len(listed_cells)} more"] if number > len(listed_cells) else lines


def _table(ledger: Ledger) -> list[str]:
    """Return a table of engine × status, with tokens if models generate, and one of file × engine for several files."""
    counts = ledger.counts.counts
    shown = [status.value for status in Status if any(key.status == status for key in counts)]
    seen = dict.fromkeys(key.engine for key in counts)
    titles = [
        title for title in dict.fromkeys([*(engine.title for engine in ledger.run.engines), *seen]) if title in seen
    ]
    tokens = ledger.counts.tokens
    head = ("tokens",) if tokens else ()
    rows = [("engine", *shown, *head, "levels reached")]
    for title in titles:
        statuses, levels = Counter[str](), Counter[str]()
        for key, count in counts.items():
            if key.engine == title:
                statuses[key.status] += count
                levels[key.level] += count
        generated = (str(tokens.get(title, "")),) if tokens else ()
        rows.append((title, *(str(statuses[status] or "") for status in shown), *generated, _levels(levels)))
    return _align(rows) + _suites(counts, titles)


def _suites(counts: Mapping[CountKey, int], titles: list[str]) -> list[str]:
    """Return a table with `3/4` where 3 of a file's 4 cells passed or failed as expected."""
    files = list(dict.fromkeys(key.file for key in counts))
    if len(files) < 2:
        return []
    totals, good = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for key, count in counts.items():
        totals[key.file, key.engine] += count
        good[key.file, key.engine] += count * key.good
    rows = [("suite", *titles, "")]
    for file in files:
        shares = [f"{good[file, title]}/{totals[file, title]}" if totals[file, title] else "" for title in titles]
        rows.append((PurePosixPath(file).stem.removeprefix("test_"), *shares, ""))
    return ["", *_align(rows)]


def _align(rows: list[tuple[str, ...]]) -> list[str]:
    """Return the lines of a table: its first and last columns are left-aligned, the numbers between right-aligned."""
    from rich.console import Console  # a session without cells has no table
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for column in range(len(rows[0])):
        table.add_column(justify="left" if column in (0, len(rows[0]) - 1) else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(visible(word)) for word in row))
    console = Console(width=_WIDEST, color_system=None)
    with console.capture() as captured:
        console.print(table)
    return [line.rstrip() for line in captured.get().splitlines()]


def _levels(reached: Counter[str]) -> str:
    return ", ".join(f"{level.value} {reached[level.value]}" for level in LEVELS if reached[level.value])


def _how_to_select(skipped: Iterable[pytest.TestReport]) -> list[str]:
    """Return how to select engines, if tests were skipped for lack of one."""
    count = sum(isinstance(report.longrepr, tuple) and NO_ENGINE in str(report.longrepr[2]) for report in skipped)
    if not count:
        return []
    ways = "--t2n-tract=0.21,0.23 (or t2n_tract in the ini file), --t2n-khronos"
    return [f"{count} test{'s' if count != 1 else ''} skipped: no engine selected; select with {ways}"]
