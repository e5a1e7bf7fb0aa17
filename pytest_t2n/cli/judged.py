"""The records of `t2n matrix run`: written as cells end, with the plan before them and the end behind them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from pytest_t2n.records.cell import Cell
from pytest_t2n.records.completeness import plan_for
from pytest_t2n.records.file import MATRIX_FILE, RecordFile, encode, remove_report
from pytest_t2n.records.from_outcome import simple_record
from pytest_t2n.records.run_line import start_time
from pytest_t2n.records.schema import SCHEMA, CellLine, EndLine, GraphLine, Record, RunLine
from t2n_core.check.stage import Stage, Status


class JudgedCells:
    """The cells of a run; several threads may add to them."""

    def __init__(self, folder: Path | None, run: RunLine, plan: Sequence[Cell]) -> None:
        """Begin `matrix.jsonl` in `folder`, if there is one, in place of what is there. Raises OSError."""
        self.stopped = ""
        """The reason why the run stopped early."""
        self._folder, self._plan = folder, plan
        self._cells: dict[str, CellLine] = {}
        self._graphs: set[str] = set()
        self._adding = Lock()
        self._failure: OSError | None = None
        self._file = RecordFile(folder / MATRIX_FILE if folder is not None else None)
        if folder is not None:
            remove_report(folder)
        self._write(run)
        self._write(plan_for(plan))

    @property
    def cells(self) -> list[CellLine]:
        """Return the records so far, in the order of the plan."""
        return [self._cells[cell.nodeid] for cell in self._plan if cell.nodeid in self._cells]

    def add(self, record: CellLine, graph: GraphLine | None = None) -> None:
        """Write the record of a cell, and its graph if that is new; nothing once the run has stopped."""
        with self._adding:
            if self.stopped:
                return
            if graph is not None and graph.key not in self._graphs:
                self._graphs.add(graph.key)
                self._write(graph)
            self._cells[record.nodeid] = record
            self._write(record)

    def stop(self, why: str) -> None:
        """Take no more records: cells that have none did not run."""
        with self._adding:
            self.stopped = why

    def finish(self) -> None:
        """Write the end, and the report if there is a folder. Raises OSError, also one of a write before."""
        for cell in self._plan:
            if cell.nodeid not in self._cells:
                message = f"the run stopped before it: {self.stopped}"
                self._write(simple_record(cell, Status.NOT_RUN, Stage.SETUP, "NotRun", message))
        self._write(EndLine(SCHEMA, start_time(), self.stopped))
        if self._folder is not None:
            from pytest_t2n.report import Matrix, write_matrix

            write_matrix(Matrix.of_file(self._file.outlines()), self._folder)
        self._file.close()
        if self._failure is not None:
            raise self._failure

    def _write(self, record: Record) -> None:
        self._failure = self._file.append(encode(record).encode()) or self._failure


__all__ = ["JudgedCells"]
