"""What a session's summary counts, as cells end."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pytest_t2n.records.schema import CellLine


class Kind(NamedTuple):
    """Cells that the summary does not tell from each other."""

    file: str
    engine: str
    """Title of the column."""
    status: str
    level: str
    """Empty where none holds."""
    expected: bool
    reused: bool

    @property
    def good(self) -> bool:
        """Passed, or no surprise."""
        return self.status == "pass" or self.expected


class Tally:
    """How many cells of each kind there were."""

    def __init__(self) -> None:
        self.counts: Counter[Kind] = Counter()

    def add(self, cell: CellLine) -> None:
        file = cell.nodeid.partition("::")[0]
        self.counts[Kind(file, cell.engine, cell.status, cell.level or "", bool(cell.expected), cell.reused)] += 1

    @property
    def total(self) -> int:
        return self.counts.total()

    @property
    def reused(self) -> int:
        return sum(count for kind, count in self.counts.items() if kind.reused)


__all__ = ["Kind", "Tally"]
