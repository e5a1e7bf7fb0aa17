"""Records as a matrix: rows are cases, columns are engine versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from pytest_t2n.records.completeness import Completeness, completeness_of
from pytest_t2n.records.file import StoredRecords
from pytest_t2n.records.schema import CellLine, EngineLine, Record, RunLine, cells_of, graphs_of
from t2n_core.check.stage import Status


@dataclass(frozen=True, slots=True)
class Row:
    """A case and its cell per column, None where there is none."""

    case: str
    cells: tuple[CellLine | None, ...]

    @property
    def differs(self) -> bool:
        """Return whether the versions disagree on the status."""
        return len({cell.status for cell in self.cells if cell is not None}) > 1

    @property
    def suite(self) -> str:
        """Return the test file: `suites/test_aten.py`."""
        return self.case.partition("::")[0]

    @property
    def name(self) -> str:
        """Return the case inside its suite: `test_layer[linear]`."""
        return self.case.partition("::")[2] or self.case

    @property
    def function(self) -> str:
        """Return the test without its parameters: `test_layer`."""
        return self.name.partition("[")[0]

    @property
    def op(self) -> str:
        """Return the operator that the case is about; empty if it has several and the test names none."""
        named = self._first(lambda cell: cell.op)
        if named:
            return named
        ops = {op for cell in self._known() for op in cell.ops}
        if not ops:
            ops = {cell.error.op for cell in self._known() if cell.error is not None and cell.error.op}
        return ops.pop() if len(ops) == 1 else ""

    @property
    def ops(self) -> list[str]:
        """Return the operators of the case, the one that it is about first."""
        found = dict.fromkeys([self.op, *(op for cell in self._known() for op in cell.ops)])
        found.update({cell.error.op: None for cell in self._known() if cell.error is not None})
        return [op for op in found if op]

    @property
    def dtype(self) -> str:
        """Return the type that the case computes in: that of its input, else of its first output."""
        return self._first(lambda cell: cell.dtype) or self._first(
            lambda cell: cell.outputs[0].dtype if cell.outputs else ""
        )

    def _known(self) -> list[CellLine]:
        return [cell for cell in self.cells if cell is not None]

    def _first(self, read: Callable[[CellLine], str]) -> str:
        return next((value for cell in self._known() if (value := read(cell))), "")


def _unchanged(cell: CellLine) -> CellLine:
    return cell


@dataclass(frozen=True, slots=True)
class Matrix:
    """The records of a report, by case and engine version."""

    runs: tuple[RunLine, ...]
    columns: tuple[EngineLine, ...]
    rows: tuple[Row, ...]
    completeness: Completeness
    """The state of the file; planned cells without a record are in the rows as cells that did not run."""
    graphs: Mapping[str, str] = field(default_factory=dict)
    """Graph texts by the keys that cells have."""
    whole: Callable[[CellLine], CellLine] = _unchanged
    """Function that returns a cell with its evidence; the cells of the rows may be outlines."""

    @classmethod
    def of(cls, records: Iterable[Record]) -> Matrix:
        """Return the matrix of records, its columns in the order of the runs, its rows by name."""
        records = list(records)
        return cls._of(records, graphs_of(records), _unchanged)

    @classmethod
    def of_file(cls, stored: StoredRecords) -> Matrix:
        """Return the matrix of outlines: evidence and graphs are read when they are needed."""
        return cls._of(stored.records, stored.graphs, stored.whole)

    @classmethod
    def _of(cls, records: Sequence[Record], graphs: Mapping[str, str], whole: Callable[[CellLine], CellLine]) -> Matrix:
        runs = tuple(record for record in records if isinstance(record, RunLine))
        columns = {engine.title: engine for run in runs for engine in run.engines}
        by_case: dict[str, dict[str, CellLine]] = {}
        completeness = completeness_of(records)
        for cell in (*cells_of(records), *completeness.missing):
            columns.setdefault(cell.engine, EngineLine(cell.target, cell.version, cell.label))
            by_case.setdefault(cell.case, {})[cell.engine] = cell
        rows = tuple(Row(case, tuple(own.get(title) for title in columns)) for case, own in sorted(by_case.items()))
        return cls(runs, tuple(columns.values()), rows, completeness, graphs, whole)

    @property
    def cells(self) -> list[CellLine]:
        """Return the cells of all rows."""
        return [cell for row in self.rows for cell in row.cells if cell is not None]

    def column(self, index: int) -> list[CellLine]:
        """Return the cells of one engine version."""
        return [cell for row in self.rows if (cell := row.cells[index]) is not None]

    @property
    def statuses(self) -> list[str]:
        """Return the statuses that occur, in the order of their definition."""
        found = {cell.status for cell in self.cells}
        return [status.value for status in Status if status.value in found]

    @property
    def suite_names(self) -> dict[str, str]:
        """Return a short name per suite: `aten` for `suites/test_aten.py`, the path where two would be equal."""
        suites = dict.fromkeys(row.suite for row in self.rows)
        short = {suite: PurePosixPath(suite).stem.removeprefix("test_") or suite for suite in suites}
        shared = Counter(short.values())
        return {suite: name if shared[name] == 1 else suite for suite, name in short.items()}


def count_statuses(cells: Sequence[CellLine]) -> Counter[str]:
    """Return the number of cells of each status."""
    return Counter(cell.status for cell in cells)


def is_proven(cell: CellLine) -> bool:
    """Return True for a pass, and for a weak one that is weak for a written reason."""
    return cell.status == "pass" or (cell.status == "weak" and bool(cell.expected))


def is_surprise(cell: CellLine) -> bool:
    """Return True for a cell that needs attention: neither passed nor skipped, and not as expected."""
    return cell.status not in ("pass", "skip") and not cell.expected


__all__ = ["Matrix", "Row", "count_statuses", "is_proven", "is_surprise"]
