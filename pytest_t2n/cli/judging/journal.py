"""The records of a run of a bundle, written as cells end: the plan, the cells, the end."""

from __future__ import annotations

from pathlib import Path

from pytest_t2n.cli.judging.plan import Plan
from pytest_t2n.control.earlier import Interrupted
from pytest_t2n.control.run_file import RunFile
from pytest_t2n.records.file import write_records
from pytest_t2n.records.folder import MATRIX_FILE
from pytest_t2n.records.from_outcome import simple_record
from pytest_t2n.records.index import RecordIndex
from pytest_t2n.records.outline import outline_of
from pytest_t2n.records.schema import CellLine, GraphLine, RecordError, RunLine
from t2n_core.parity.stage import Stage, Status


class Journal:
    """The cells of a run. Outlines are in memory, the evidence is in the file."""

    def __init__(self, folder: Path | None, run: RunLine, plan: Plan, *, resume: bool = False) -> None:
        """Start `matrix.jsonl` in `folder`, if given, or continue an interrupted run's.

        Raises:
            InputError: the existing file is from other engines.
            RecordError: it is from another bundle or shard.
            OSError: the folder cannot be written.
        """
        self.kept = 0
        """Number of cells that an interrupted run had judged."""
        self._folder, self._plan = folder, plan
        self._cells: dict[str, CellLine] = {}
        self._words: dict[str, str] = {}
        self._file = RunFile(folder, run, resume=resume, accept=self._check_plan)
        if self._file.kept is None:
            self._file.append(plan.line)
        else:
            self._cells = {cell.nodeid: cell for cell in self._file.kept.cells}
            self.kept = len(self._cells)

    def __contains__(self, nodeid: str) -> bool:
        return nodeid in self._cells

    @property
    def cells(self) -> list[CellLine]:
        """Return outlines of the records so far, in the order of the plan."""
        return [self._cells[cell.nodeid] for cell in self._plan.cells if cell.nodeid in self._cells]

    def add(self, record: CellLine, graph: GraphLine | None = None) -> None:
        """Write the record of a cell, and its graph if that is new."""
        if graph is not None:
            self._file.append(graph)
        self._file.append(record)
        self._cells[record.nodeid] = outline_of(record, self._words)

    def finish(self, stopped: str = "") -> None:
        """Write the end, and the report if there is a folder; the file is then in the order of the plan.

        `stopped` is why cells are missing. Raises OSError, also of an earlier write.
        """
        message = f"the run stopped before it: {stopped}"
        for cell in self._plan.cells:
            if cell.nodeid not in self._cells:
                self._file.append(simple_record(cell, Status.NOT_RUN, Stage.SETUP, "NotRun", message))
        self._file.end(stopped)
        if self._folder is not None:
            from pytest_t2n.report.matrix import Matrix
            from pytest_t2n.report.write import write_matrix

            records = RecordIndex.of_file(self._file.records)
            if self._file.failure is None:
                nodeids = [cell.nodeid for cell in self._plan.cells]
                write_records(self._folder / MATRIX_FILE, records.in_order(nodeids))
            write_matrix(Matrix.of_index(records), self._folder)
        self._file.records.close()
        if self._file.failure is not None:
            raise self._file.failure

    def _check_plan(self, earlier: Interrupted) -> None:
        """Raise RecordError if an interrupted run had another plan."""
        if earlier.cells and earlier.plan != self._plan.line:
            difference = "from another bundle, other cases or another shard"
            raise RecordError(f"--t2n-resume: {self._folder} is {difference}; start again")
