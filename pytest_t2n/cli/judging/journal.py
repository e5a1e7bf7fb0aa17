"""The records of a run of a bundle: written as cells end, with the plan before them and the end after them."""

from __future__ import annotations

from pathlib import Path

from pytest_t2n.cli.judging.plan import Plan
from pytest_t2n.control.earlier import read_interrupted, rewrite
from pytest_t2n.records.file import RecordFile, encode, write_records
from pytest_t2n.records.folder import MATRIX_FILE, check_folder, remove_report
from pytest_t2n.records.from_outcome import simple_record
from pytest_t2n.records.outline import outline_of
from pytest_t2n.records.run_line import start_time
from pytest_t2n.records.schema import SCHEMA, CellLine, EndLine, GraphLine, Record, RecordError, RunLine
from t2n_core.check.stage import Stage, Status


class Journal:
    """The cells of a run. In memory are outlines; the evidence is in the file."""

    def __init__(self, folder: Path | None, run: RunLine, plan: Plan, *, resume: bool = False) -> None:
        """Begin `matrix.jsonl` in `folder`, if there is one, or go on with the one that an interrupted run left.

        Raises:
            pytest.UsageError: that one is of other engines.
            RecordError: it is of another bundle or shard.
            OSError: the folder cannot be written.
        """
        self.kept = 0
        """Number of cells that an interrupted run had judged."""
        self._folder, self._plan = folder, plan
        self._cells: dict[str, CellLine] = {}
        self._graphs: set[str] = set()
        self._words: dict[str, str] = {}
        self._failure: OSError | None = None
        path = folder / MATRIX_FILE if folder is not None else None
        if resume and path is not None and path.exists():
            self._take_up(path, run)
        if folder is not None:
            check_folder(folder)
        self._file = RecordFile(path, append=bool(self.kept))
        if folder is not None:
            remove_report(folder)
        if not self.kept:
            self._write(run)
            self._write(plan.line)

    def __contains__(self, nodeid: str) -> bool:
        return nodeid in self._cells

    @property
    def cells(self) -> list[CellLine]:
        """Return outlines of the records so far, in the order of the plan."""
        return [self._cells[cell.nodeid] for cell in self._plan.cells if cell.nodeid in self._cells]

    def add(self, record: CellLine, graph: GraphLine | None = None) -> None:
        """Write the record of a cell, and its graph if that is new."""
        if graph is not None and graph.key not in self._graphs:
            self._graphs.add(graph.key)
            self._write(graph)
        self._write(record)
        self._cells[record.nodeid] = outline_of(record, self._words)

    def finish(self, stopped: str = "") -> None:
        """Write the end, and the report if there is a folder; the file is then in the order of the plan.

        `stopped` says why cells are missing. Raises OSError, also one of a write before.
        """
        message = f"the run stopped before it: {stopped}"
        for cell in self._plan.cells:
            if cell.nodeid not in self._cells:
                self._write(simple_record(cell, Status.NOT_RUN, Stage.SETUP, "NotRun", message))
        self._write(EndLine(SCHEMA, start_time(), stopped))
        if self._folder is not None:
            from pytest_t2n.report import Matrix, write_matrix

            stored = self._file.outlines()
            if self._failure is None:
                nodeids = [cell.nodeid for cell in self._plan.cells]
                write_records(self._folder / MATRIX_FILE, stored.in_order(nodeids))
            write_matrix(Matrix.of_file(stored), self._folder)
        self._file.close()
        if self._failure is not None:
            raise self._failure

    def _take_up(self, path: Path, run: RunLine) -> None:
        earlier = read_interrupted(path, run)
        if not earlier.cells:
            return
        if earlier.plan != self._plan.line:
            raise RecordError(f"--t2n-resume: {path} is of another bundle, other cases or another shard; start afresh")
        self._graphs = rewrite(path, run, earlier)
        self._cells = {cell.nodeid: cell for cell in earlier.cells}
        self.kept = len(self._cells)

    def _write(self, record: Record) -> None:
        self._failure = self._file.append(encode(record).encode()) or self._failure


__all__ = ["Journal"]
