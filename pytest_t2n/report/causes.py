"""Failures grouped by their cause, which is the fingerprint of their error: "one cause, 41 cells"."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pytest_t2n.records.outline import outline_of
from pytest_t2n.records.schema import CellLine
from pytest_t2n.report.matrix import Row, is_surprise

_WITHOUT_CAUSE = ("pass", "skip", "not_run")


@dataclass(slots=True)
class Cause:
    """A cause with its number of failed cells."""

    key: str
    first: CellLine
    """Outline of the first cell."""
    count: int = 0
    surprises: int = 0
    """Number of cells that failed unexpectedly."""
    cases: int = 0
    """Number of cases with this cause, if the cells are sorted by case."""
    engines: dict[str, None] = field(default_factory=dict)
    """Titles of the engines that fail with this cause."""
    _last: str = ""

    def add(self, cell: CellLine) -> None:
        """Count one more cell."""
        self.count += 1
        self.surprises += is_surprise(cell)
        self.cases += self.count == 1 or cell.case != self._last
        self._last = cell.case
        self.engines[cell.engine] = None

    @property
    def title(self) -> str:
        """Return a summary of the first message."""
        return message_gist(self.first) or f"{self.first.status} at {self.first.stage}"


def message_gist(cell: CellLine) -> str:
    """Return the first line of a cell's error, with the next one if the first only announces a list."""
    lines = [line.strip() for line in cell.error.message.splitlines() if line.strip()] if cell.error is not None else []
    if len(lines) > 1 and lines[0].endswith(":"):
        return f"{lines[0]} {lines[1].removeprefix('- ')}"
    return lines[0] if lines else ""


def cause_key(cell: CellLine) -> str:
    """Return a key that is equal for cells with one cause; empty for a cell that did not fail.

    Mismatches without an error are grouped by case.
    """
    if cell.status in _WITHOUT_CAUSE:
        return ""
    if cell.error is not None and cell.error.fingerprint:
        return cell.error.fingerprint
    return f"{cell.status}@{cell.stage}:{cell.error.error_class if cell.error is not None else cell.case}"


class CauseFold:
    """Groups failures by their causes."""

    def __init__(self) -> None:
        self._found: dict[str, Cause] = {}
        self._words: dict[str, str] = {}

    def add(self, row: Row) -> None:
        """Add the cells of a row."""
        for cell in row.cells:
            if cell is not None:
                self.add_cell(cell)

    def add_cell(self, cell: CellLine) -> None:
        """Add a cell; a case's cells must be consecutive."""
        key = cause_key(cell)
        if not key:
            return
        if key not in self._found:
            self._found[key] = Cause(key, outline_of(cell, self._words))
        self._found[key].add(cell)

    def causes(self) -> list[Cause]:
        """Return the causes: those with most surprises first, then those with most cells."""
        return sorted(self._found.values(), key=lambda cause: (-cause.surprises, -cause.count, cause.key))


def find_causes(cells: Iterable[CellLine]) -> list[Cause]:
    """Return the causes of failures: those with most surprises first, then those with most cells."""
    fold = CauseFold()
    for cell in cells:
        fold.add_cell(cell)
    return fold.causes()
