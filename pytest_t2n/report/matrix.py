"""Records as a matrix: rows are cases, columns are engine versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_t2n.records import CellLine, EngineLine, Record, RunLine, cells_of
from t2n_core.check.stage import Status


@dataclass(frozen=True, slots=True)
class Row:
    """One case and its cell per column, None where there is none."""

    case: str
    cells: tuple[CellLine | None, ...]

    @property
    def differs(self) -> bool:
        """The versions do not agree on the status."""
        return len({cell.status for cell in self.cells if cell is not None}) > 1


@dataclass(frozen=True, slots=True)
class Matrix:
    """All that a report shows."""

    runs: tuple[RunLine, ...]
    columns: tuple[EngineLine, ...]
    rows: tuple[Row, ...]

    @classmethod
    def of(cls, records: Iterable[Record]) -> Matrix:
        """Columns in the order of the runs, rows by name."""
        records = list(records)
        runs = tuple(record for record in records if isinstance(record, RunLine))
        columns = {engine.title: engine for run in runs for engine in run.engines}
        by_case: dict[str, dict[str, CellLine]] = {}
        for cell in cells_of(records):
            columns.setdefault(cell.engine, EngineLine(cell.target, cell.version, cell.label))
            by_case.setdefault(cell.case, {})[cell.engine] = cell
        rows = tuple(Row(case, tuple(own.get(title) for title in columns)) for case, own in sorted(by_case.items()))
        return cls(runs, tuple(columns.values()), rows)

    @property
    def cells(self) -> list[CellLine]:
        return [cell for row in self.rows for cell in row.cells if cell is not None]

    def column(self, index: int) -> list[CellLine]:
        """The cells of one engine version."""
        return [cell for row in self.rows if (cell := row.cells[index]) is not None]

    @property
    def statuses(self) -> list[str]:
        """Those that occur, in the order of their definition."""
        found = {cell.status for cell in self.cells}
        return [status.value for status in Status if status.value in found]


def count_statuses(cells: Sequence[CellLine]) -> Counter[str]:
    return Counter(cell.status for cell in cells)


def is_surprise(cell: CellLine) -> bool:
    """A cell that somebody should look at: neither passed nor skipped nor expected to fail."""
    return cell.status not in ("pass", "skip") and not cell.expected


__all__ = ["Matrix", "Row", "count_statuses", "is_surprise"]
