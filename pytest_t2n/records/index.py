"""Records by case: places of cells and graphs in memory, their contents read from the file on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pytest_t2n.records.completeness import Completeness, last_plans, missing_cells
from pytest_t2n.records.file import RecordFile, decode_line, each_with_offset, open_records
from pytest_t2n.records.folder import MATRIX_FILE
from pytest_t2n.records.schema import CellLine, EndLine, EngineLine, GraphLine, PlanLine, Record, RecordError, RunLine
from t2n_core.parity.stage import Status
from t2n_core.text import text_of


class RecordIndex:
    """The records of one file; runs and plans are in memory, and about 300 bytes for each cell."""

    def __init__(self, records: Iterable[tuple[int, Record]], read: Callable[[int], Record]) -> None:
        """Index records by their places; `read` returns the record at a place. Raises what iterating raises."""
        self.read = read
        self.runs: list[RunLine] = []
        self.plans: list[PlanLine] = []
        self.end: EndLine | None = None
        """The last record, if it is the end of the session."""
        self.columns: dict[str, EngineLine] = {}
        """The columns with cells, by title, in the order of their first cells."""
        self.graph_places: dict[str, int] = {}
        self._places: dict[str, dict[str, int | None]] = {}
        """Place of each cell by platform and node id; None if it is planned, and has no record so far."""
        self._rows: dict[str, list[int | CellLine]] = {}
        """Cells by case: the place, or the cell itself if the file has no record of it."""
        not_run = sum(self._add(position, record) for position, record in records)
        plans = last_plans(self.plans)
        missing = missing_cells(self.runs, plans, lambda nodeid, key: self._places[key].get(nodeid) is None)
        for cell in missing:
            self._add_cell(cell, cell)
        count = sum(1 for _ in self.places())
        planned = sum(len(nodeids) for plan in plans for nodeids in plan.cells.values()) if plans else None
        self.completeness = Completeness(
            found=count if planned is None else planned - len(missing),
            planned=planned,
            ended=self.end is not None,
            stopped=self.end.stopped if self.end is not None else "",
            not_run=not_run,
        )
        self._names = sorted(self._rows)

    @classmethod
    def of(cls, records: Sequence[Record]) -> RecordIndex:
        """Return the index of records in memory."""
        return cls(enumerate(records), records.__getitem__)

    @classmethod
    def of_file(cls, file: RecordFile) -> RecordIndex:
        """Return the index of a file that is being written. Raises msgspec.DecodeError, OSError."""
        return cls(((position, decode_line(line)) for position, line in file.lines()), file.read)

    @property
    def graphs(self) -> Mapping[str, str]:
        """Return the texts of the graphs by their keys, read on access."""
        return _Graphs(self)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    def places(self) -> Iterator[tuple[str, str, int]]:
        """Yield node id, platform and place of each cell with a record, in the order of the file on each platform."""
        for platform, cells in self._places.items():
            entries = [(position, nodeid) for nodeid, position in cells.items() if position is not None]
            yield from ((nodeid, platform, position) for position, nodeid in sorted(entries))

    def cells(self) -> Iterator[CellLine]:
        """Yield the cells with a record, read one by one."""
        return (self._cell(position) for _, _, position in self.places())

    def cases(self) -> Iterator[str]:
        """Yield the names of the rows in order."""
        return iter(self._names)

    def pick(self, cases: Iterable[str]) -> Iterator[tuple[str, list[CellLine]]]:
        """Yield these cases with their cells; planned cells without a record did not run.

        Raises KeyError, and RecordError if someone else writes into the file.
        """
        return ((case, [self._cell(location) for location in self._rows[case]]) for case in cases)

    def in_order(self, nodeids: Iterable[str]) -> Iterator[Record]:
        """Yield all records with the cells in an order, each graph before the first cell that has it.

        Raises msgspec.DecodeError, OSError.
        """
        yield from self.runs
        yield from self.plans
        places = {nodeid: position for nodeid, _, position in self.places()}
        written: set[str] = set()
        for nodeid in nodeids:
            cell = self._cell(places[nodeid])
            if cell.graph in self.graph_places and cell.graph not in written:
                written.add(cell.graph)
                yield self.read(self.graph_places[cell.graph])
            yield cell
        if self.end is not None:
            yield self.end

    def _add(self, position: int, record: Record) -> bool:
        """Add a record, and return whether it is a cell that did not run."""
        self.end = record if isinstance(record, EndLine) else None
        if isinstance(record, CellLine):
            self._add_cell(record, position)
            return record.status == Status.NOT_RUN
        if isinstance(record, GraphLine):
            self.graph_places[record.key] = position
        elif isinstance(record, RunLine):
            self.runs.append(record)
        elif isinstance(record, PlanLine):
            self.plans.append(record)
            cells = self._places.setdefault(record.platform, {})
            for nodeids in record.cells.values():
                for nodeid in nodeids:
                    cells.setdefault(nodeid)
        return False

    def _add_cell(self, cell: CellLine, location: int | CellLine) -> None:
        self.columns.setdefault(cell.engine, EngineLine(cell.target, cell.version, cell.label, exporter=cell.exporter))
        row = self._rows.setdefault(cell.case, [])
        if isinstance(location, int):
            cells = self._places.setdefault(cell.platform, {})
            earlier = cells.get(cell.nodeid)
            if earlier is not None:
                row.remove(earlier)  # the last of several records counts
            cells[cell.nodeid] = location
        row.append(location)

    def _cell(self, location: int | CellLine) -> CellLine:
        cell = self.read(location) if isinstance(location, int) else location
        if not isinstance(cell, CellLine):
            raise RecordError("the file of records changed while it was read")
        return cell


class _Graphs(Mapping[str, str]):
    def __init__(self, index: RecordIndex) -> None:
        self._index = index

    def __getitem__(self, key: str) -> str:
        record = self._index.read(self._index.graph_places[key])
        assert isinstance(record, GraphLine)
        return record.text

    def __contains__(self, key: object) -> bool:
        return key in self._index.graph_places

    def __iter__(self) -> Iterator[str]:
        return iter(self._index.graph_places)

    def __len__(self) -> int:
        return len(self._index.graph_places)


@contextmanager
def open_index(path: Path, torn: Callable[[str], object] | None = None) -> Iterator[RecordIndex]:
    """Yield the index of a `matrix.jsonl`, or of a directory with one; `torn` as in `each_record`.

    Raises:
        RecordError: a line that is not a record, or of a newer schema; the message names file and line.
        OSError: the file cannot be read.
    """
    path = path / MATRIX_FILE if path.is_dir() else path
    with open_records(path) as file:

        def read(position: int) -> Record:
            file.seek(position)
            try:
                return decode_line(file.readline())
            except ValueError as exc:
                raise RecordError(f"{path} changed while it was read: {text_of(exc)}") from None

        yield RecordIndex(each_with_offset(path, file, torn), read)


def completeness_of(records: Sequence[Record]) -> Completeness:
    """Return the state of the records of a file, in the order of the file."""
    return RecordIndex.of(records).completeness
