"""A file of records with an index: rows of complete cells, read on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from pytest_t2n.records.completeness import Completeness, planned_cell
from pytest_t2n.records.file import decode_line, each_with_offset
from pytest_t2n.records.folder import MATRIX_FILE
from pytest_t2n.records.indexed.plans import RAW_DECODER, RawPlan, texts_of
from pytest_t2n.records.indexed.table import CellTable, Place
from pytest_t2n.records.schema import CellLine, EndLine, EngineLine, GraphLine, Record, RecordError, RunLine
from t2n_core.foreign import open_file
from t2n_core.text import text_of

_NOWHERE = -1
"""Offset of a planned cell without a record; its size is its number in the plan."""


class IndexedFile:
    """The records of one file. Only its runs and columns are in memory, for any number of cells."""

    def __init__(self, path: Path, torn: Callable[[str], object] | None = None) -> None:
        """Read a `matrix.jsonl`, or a directory with one, once from start to end; `torn` as in `each_record`.

        Raises:
            RecordError: a line that is not a record, or of a newer schema; the message names file and line.
            OSError: the file cannot be read.
        """
        self._path = path / MATRIX_FILE if path.is_dir() else path
        self._closing = ExitStack()
        self._table = CellTable()
        self._closing.callback(self._table.close)
        self.runs: list[RunLine] = []
        self.plans: list[RawPlan] = []
        """The plan lines without their node ids."""
        self._plan: Place | None = None
        self.columns: dict[str, EngineLine] = {}
        """The columns with cells, by title, in the order of their first cells."""
        try:
            self.end = self._read(torn)
            self._file: BinaryIO = self._closing.enter_context(open_file(self._path))
            self._table.seal()
            self._engines = {(one.id, one.platform): one for run in self.runs for one in run.engines}
            self.completeness = self._complete()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> IndexedFile:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and remove the index."""
        self._closing.close()

    @property
    def graphs(self) -> Mapping[str, str]:
        """Return the texts of the graphs by their keys, read from the file on access."""
        return _Graphs(self._table, self.read)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._table.count_rows()

    def places(self) -> Iterator[tuple[str, str, Place]]:
        """Yield node id, platform and place of each cell with a record, in the order of their first records."""
        return (one for one in self._table.cells() if one[2].offset != _NOWHERE)

    def graph_places(self) -> Iterator[tuple[str, Place]]:
        """Yield key and place of each graph."""
        for key in self._table.graphs():
            place = self._table.graph(key)
            assert place is not None
            yield key, place

    def planned(self) -> Iterator[tuple[str, str, str]]:
        """Yield node id, engine and platform of each planned cell, in order."""
        return self._table.plan_lines()

    def order(self) -> Iterator[str]:
        """Yield the planned node ids of all shards, if the file is a shard. Raises ValueError, RecordError."""
        if self._plan is not None:
            self._file.seek(self._plan.offset)
            plan = RAW_DECODER.decode(self._file.read(self._plan.size))
            yield from texts_of(plan.nodeids) if isinstance(plan, RawPlan) else ()

    def read(self, place: Place) -> Record:
        """Return the record at a place. Raises RecordError if someone else writes into the file."""
        self._file.seek(place.offset)
        try:
            return decode_line(self._file.read(place.size))
        except ValueError as exc:
            raise RecordError(f"{self._path} changed while it was read: {text_of(exc)}") from None

    def cases(self) -> Iterator[str]:
        """Yield the names of the rows in order."""
        return (case for _, case in self._table.rows())

    def rows(self) -> Iterator[tuple[str, list[CellLine]]]:
        """Yield each case with its cells, by name; planned cells without a record did not run.

        Raises RecordError if someone else writes into the file.
        """
        for number, case in self._table.rows():
            yield case, self._cells(number)

    def pick(self, cases: Iterable[str]) -> Iterator[tuple[str, list[CellLine]]]:
        """Yield these cases with their cells. Raises KeyError, RecordError."""
        for case in cases:
            yield case, self._cells(self._table.row(case))

    def _read(self, torn: Callable[[str], object] | None) -> EndLine | None:
        """Index the lines of the file, and return its last one if that is an end line."""
        last: object = None
        for number, (offset, size, record) in enumerate(each_with_offset(self._path, torn, RAW_DECODER), 1):
            last = record
            if isinstance(record, CellLine):
                self._add(record, Place(0, offset, size))
            elif isinstance(record, GraphLine):
                self._table.add_graph(record.key, Place(0, offset, size))
            elif isinstance(record, RunLine):
                self.runs.append(record)
            elif isinstance(record, RawPlan):
                self.plans.append(record.head)
                self._plan = Place(0, offset, size)
                self._take_plan(record, number)
        return last if isinstance(last, EndLine) else None

    def _take_plan(self, plan: RawPlan, number: int) -> None:
        cells = ((nodeid, engine) for engine, raw in plan.cells.items() for nodeid in texts_of(raw))
        try:
            self._table.plan(cells, plan.platform)
        except ValueError as exc:
            raise RecordError(f"{self._path}:{number}: {text_of(exc)} - at `$.cells[...]`") from None

    def _complete(self) -> Completeness:
        """Return the state of the file, and add missing cells to the rows."""
        found, not_run, planned = self._table.count(), self._table.count("not_run"), self._table.count_planned()
        lost = 0
        for number, nodeid, engine, platform in self._table.missing():
            cell = planned_cell(nodeid, engine, platform, self._engines)
            self._add(cell, Place(0, _NOWHERE, number))
            lost += 1
        self._table.seal()
        has_plan = self._table.has_plan
        return Completeness(
            found=planned - lost if has_plan else found,
            planned=planned if has_plan else None,
            ended=self.end is not None,
            stopped=self.end.stopped if self.end is not None else "",
            not_run=not_run,
        )

    def _add(self, cell: CellLine, place: Place) -> None:
        self.columns.setdefault(cell.engine, EngineLine(cell.target, cell.version, cell.label))
        self._table.add_cell(cell.nodeid, cell.platform, cell.case, cell.status, place)

    def _cells(self, row: int) -> list[CellLine]:
        return [self._cell(place) for place in self._table.cells_of_row(row)]

    def _cell(self, place: Place) -> CellLine:
        if place.offset == _NOWHERE:
            return planned_cell(*self._table.planned(place.size), self._engines)
        found = self.read(place)
        if not isinstance(found, CellLine):
            raise RecordError(f"{self._path} changed while it was read")
        return found


class _Graphs(Mapping[str, str]):
    def __init__(self, table: CellTable, read: Callable[[Place], Record]) -> None:
        self._table, self._read = table, read

    def __getitem__(self, key: str) -> str:
        place = self._table.graph(key)
        if place is None:
            raise KeyError(key)
        found = self._read(place)
        assert isinstance(found, GraphLine)
        return found.text

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._table.graph(key) is not None

    def __iter__(self) -> Iterator[str]:
        return self._table.graphs()

    def __len__(self) -> int:
        return sum(1 for _ in self)
