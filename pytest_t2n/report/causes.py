"""Failures grouped by their cause, which is the fingerprint of their error: "one cause, 41 cells"."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pytest_t2n.records.schema import CellLine
from pytest_t2n.report.matrix import is_surprise

_WITHOUT_CAUSE = ("pass", "skip", "not_run")


@dataclass(slots=True)
class Cause:
    """Cells that failed with one cause."""

    key: str
    first: CellLine
    cells: list[CellLine] = field(default_factory=list)

    @property
    def surprises(self) -> int:
        """Return the number of cells that failed unexpectedly."""
        return sum(map(is_surprise, self.cells))

    @property
    def cases(self) -> int:
        """Return the number of cases with this cause."""
        return len({cell.case for cell in self.cells})

    @property
    def engines(self) -> list[str]:
        """Return the titles of the engines that fail with this cause."""
        return list(dict.fromkeys(cell.engine for cell in self.cells))

    @property
    def title(self) -> str:
        """Return the gist of the first message."""
        return message_gist(self.first) or f"{self.first.status} at {self.first.stage}"


def message_gist(cell: CellLine) -> str:
    """Return the first line of a cell's error, with the next one if the first only announces a list."""
    lines = [line.strip() for line in cell.error.message.splitlines() if line.strip()] if cell.error is not None else []
    if len(lines) > 1 and lines[0].endswith(":"):
        return f"{lines[0]} {lines[1].removeprefix('- ')}"
    return lines[0] if lines else ""


def cause_key(cell: CellLine) -> str:
    """Return a key that is equal for cells with one cause; empty for a cell that did not fail.

    Mismatches without an error are grouped by case: other cases compute other things.
    """
    if cell.status in _WITHOUT_CAUSE:
        return ""
    if cell.error is not None and cell.error.fingerprint:
        return cell.error.fingerprint
    return f"{cell.status}@{cell.stage}:{cell.error.error_class if cell.error is not None else cell.case}"


def find_causes(cells: Iterable[CellLine]) -> list[Cause]:
    """Return the causes of failures: those with most surprises first, then those with most cells."""
    found: dict[str, Cause] = {}
    for cell in cells:
        key = cause_key(cell)
        if key:
            found.setdefault(key, Cause(key, cell)).cells.append(cell)
    return sorted(found.values(), key=lambda cause: (-cause.surprises, -len(cause.cells), cause.key))


__all__ = ["Cause", "cause_key", "find_causes", "message_gist"]
