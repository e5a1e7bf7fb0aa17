"""Records as a matrix: rows are cases, columns are engine versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Protocol

from pytest_t2n.records.completeness import Completeness
from pytest_t2n.records.index import RecordIndex
from pytest_t2n.records.schema import CellLine, EngineLine, Record, RunLine


@dataclass(frozen=True, slots=True)
class Row:
    """A case and its cell per column, or None."""

    case: str
    cells: tuple[CellLine | None, ...]

    @property
    def present(self) -> list[CellLine]:
        """Return the existing cells."""
        return [cell for cell in self.cells if cell is not None]

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
        """Return the case within its suite: `test_layer[linear]`."""
        return self.case.partition("::")[2] or self.case

    @property
    def function(self) -> str:
        """Return the test without its parameters: `test_layer`."""
        return self.name.partition("[")[0]

    @property
    def op(self) -> str:
        """Return the operator under test; empty if there are several and the test declares none."""
        declared_op = self._first(lambda cell: cell.op)
        if declared_op:
            return declared_op
        ops = {op for cell in self.present for op in cell.ops}
        if not ops:
            ops = {cell.error.op for cell in self.present if cell.error is not None and cell.error.op}
        return ops.pop() if len(ops) == 1 else ""

    @property
    def ops(self) -> list[str]:
        """Return the operators of the case, the one under test first."""
        ops = dict.fromkeys([self.op, *(op for cell in self.present for op in cell.ops)])
        ops.update({cell.error.op: None for cell in self.present if cell.error is not None})
        return [op for op in ops if op]

    @property
    def dtype(self) -> str:
        """Return the dtype of the case: its input's, or otherwise its first output's."""
        return self._first(lambda cell: cell.dtype) or self._first(
            lambda cell: cell.outputs[0].dtype if cell.outputs else ""
        )

    def _first(self, read: Callable[[CellLine], str]) -> str:
        return next((value for cell in self.present if (value := read(cell))), "")


class Rows:
    """The rows of a matrix by name, read again on each access."""

    def __init__(self, index: RecordIndex, titles: Iterable[str]) -> None:
        self._index, self._titles = index, tuple(titles)

    def __iter__(self) -> Iterator[Row]:
        return self.pick(self.cases())

    def __len__(self) -> int:
        return len(self._index)

    def cases(self) -> Iterator[str]:
        """Yield the names of the rows."""
        return self._index.cases()

    def pick(self, cases: Iterable[str]) -> Iterator[Row]:
        """Yield the rows of these cases, in order."""
        for case, cells in self._index.pick(cases):
            by_title = {cell.engine: cell for cell in cells}
            yield Row(case, tuple(by_title.get(title) for title in self._titles))


class Fold(Protocol):
    """A part of a report that counts or collects something over the rows of a matrix."""

    def add(self, row: Row) -> None:
        """Add a row; rows are sorted by name."""
        ...


@dataclass(frozen=True, slots=True)
class Matrix:
    """The records of a report, by case and engine version."""

    runs: tuple[RunLine, ...]
    columns: tuple[EngineLine, ...]
    rows: Rows
    completeness: Completeness
    """The state of the file; planned cells without a record are in the rows as cells that did not run."""
    graphs: Mapping[str, str] = field(default_factory=dict)
    """Graph texts by the keys in cells."""

    @classmethod
    def of(cls, records: Iterable[Record]) -> Matrix:
        """Return the matrix of records, its columns in the order of the runs, its rows by name."""
        return cls.of_index(RecordIndex.of(list(records)))

    @classmethod
    def of_index(cls, index: RecordIndex) -> Matrix:
        """Return the matrix of indexed records, whose rows are read on each access."""
        columns = {engine.title: engine for run in index.runs for engine in run.engines}
        columns |= {title: engine for title, engine in index.columns.items() if title not in columns}
        rows = Rows(index, columns)
        return cls(tuple(index.runs), tuple(columns.values()), rows, index.completeness, index.graphs)

    def fold(self, *parts: Fold) -> None:
        """Add each row to each of the parts, by name, reading the rows once for all of them."""
        for row in self.rows:
            for part in parts:
                part.add(row)

    @property
    def by_case(self) -> Iterator[tuple[str, list[CellLine]]]:
        """Return each case with its cells, by name."""
        return ((row.case, row.present) for row in self.rows)

    @property
    def cells(self) -> Iterator[CellLine]:
        """Return the cells of all rows."""
        return (cell for row in self.rows for cell in row.cells if cell is not None)

    def column(self, index: int) -> list[CellLine]:
        """Return the cells of one engine version."""
        return [cell for row in self.rows if (cell := row.cells[index]) is not None]

    @property
    def suite_names(self) -> dict[str, str]:
        """Return a short name per suite: `aten` for `suites/test_aten.py`, or the path if two would be equal."""
        suites = dict.fromkeys(case.partition("::")[0] for case in self.rows.cases())
        short = {suite: PurePosixPath(suite).stem.removeprefix("test_") or suite for suite in suites}
        shared = Counter(short.values())
        return {suite: name if shared[name] == 1 else suite for suite, name in short.items()}


def is_proven(cell: CellLine) -> bool:
    """Return whether a cell passed, or is weak for a written reason."""
    return cell.status == "pass" or (cell.status == "weak" and bool(cell.expected))


def is_surprise(cell: CellLine) -> bool:
    """Return whether a cell needs attention: neither passed nor skipped, and not as expected."""
    return cell.status not in ("pass", "skip") and not cell.expected
