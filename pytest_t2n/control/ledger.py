"""The controller's ledger: which cells are planned, the result of each, and which are missing at the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from pytest_t2n.collect.selection import Selection, plan_digest
from pytest_t2n.config.settings import Settings
from pytest_t2n.control.recorder import PROPERTY
from pytest_t2n.records.cell import Cell, SelectedEngine
from pytest_t2n.records.changes import compare_matrices, count_changes
from pytest_t2n.records.counts import CellCounts
from pytest_t2n.records.file import MATRIX_FILE, RecordFile, StoredRecords, decode_line, each_record, encode
from pytest_t2n.records.from_outcome import simple_record
from pytest_t2n.records.nodeids import case_id
from pytest_t2n.records.outline import outline_of
from pytest_t2n.records.platform import differences, platforms_of
from pytest_t2n.records.run_line import run_line
from pytest_t2n.records.schema import (
    SCHEMA,
    CellLine,
    GraphLine,
    PlanLine,
    Record,
    RecordError,
    RunLine,
    cells_of,
)
from t2n_core.check.stage import Stage, Status
from t2n_core.files import replacing

_NAMED = 20
"""Number of earlier failures that are named; the rest is counted."""


class Ledger:
    """Planned cells and their results, in the process that sees all reports.

    Of a cell it holds only its place in the plan: the records are in a file, and counted.
    """

    def __init__(self, settings: Settings, engines: Sequence[SelectedEngine], arguments: Sequence[str]) -> None:
        self.settings = settings
        self.run = run_line(engines, settings.level, arguments)
        self.counts = CellCounts()
        self.missing: list[str] = []
        """Node ids of planned cells without a record."""
        self.why_missing = ""
        self.resumed: list[str] = []
        """Node ids of the cells that an interrupted session had finished."""
        self.baseline: list[Record] | None = None
        """Records of an earlier run, for `--t2n-baseline`; cells are outlines."""
        self.planned = False
        """True once a plan is known; all workers have the same."""
        self.notes: list[str] = []
        """Further lines of the summary."""
        self.problems: list[str] = []
        """Problems with the records themselves; any makes the session fail."""
        self._plan: dict[str, SelectedEngine | None] = {}
        """Engine by node id, the same object that pytest holds; None once the record is there."""
        self._graphs: set[str] = set()
        """Keys of the graphs in the file."""
        self._properties: dict[str, list[tuple[str, object]]] = {}
        """Properties of tests that are not torn down yet, for `--t2n-junit-properties`."""
        self._file: RecordFile | None = None

    def outlines(self) -> Iterator[CellLine]:
        """Yield outlines of the cells so far."""
        records = self._file.records() if self._file is not None else ()
        return (outline_of(record) for record in records if isinstance(record, CellLine))

    @property
    def is_complete(self) -> bool:
        """Return whether each planned cell has its record."""
        return all(engine is None for engine in self._plan.values())

    def open(self) -> None:
        """Read the baseline, before it may be overwritten, and start `matrix.jsonl` in the report's directory.

        Without a report the records go to a file without a name, if something at the end of the session needs them.

        Raises:
            pytest.UsageError: the baseline cannot be read, or the directory cannot be written.
        """
        if self.settings.baseline is not None:
            self.baseline = _read_baseline(self.settings.baseline)
        if self.settings.report is None:
            if self.settings.accept or self.settings.benchmark or self.baseline is not None:
                self._file = RecordFile(None)
            return
        path = self.settings.report / MATRIX_FILE
        if self.settings.resume and path.exists():
            self._take_up(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if self.resumed:
                self._rewrite(path)
            self._file = RecordFile(path, append=bool(self.resumed))
        except OSError as exc:
            raise pytest.UsageError(f"--t2n-report={self.settings.report}: {exc.strerror or exc}") from None
        if not self.resumed:
            self._append(self.run)

    def _take_up(self, path: Path) -> None:
        """Read the results of an interrupted session with the same engines and packages.

        Raises:
            pytest.UsageError: the file cannot be read, or was made with others.
        """
        done: dict[str, CellLine] = {}
        words: dict[str, str] = {}
        try:
            for record in each_record(path):
                if isinstance(record, RunLine):
                    _check_same(record, self.run, path)
                elif isinstance(record, CellLine):
                    done[record.nodeid] = outline_of(record, words)
        except (OSError, RecordError) as exc:
            raise pytest.UsageError(f"--t2n-resume: {exc}") from None
        finished = [line for line in done.values() if is_done(line)]
        for line in finished:
            self._count(line)
        self.resumed = [line.nodeid for line in finished]
        surprises = [line for line in finished if line.status not in ("pass", "skip") and not line.expected]
        if finished:
            self.notes.append(f"--t2n-resume: {len(finished)} cells kept, {len(surprises)} of them failed")
        self.problems += [f"kept failure: {line.nodeid}: {line.status} at {line.stage}" for line in surprises[:_NAMED]]
        if len(surprises) > _NAMED:
            self.problems.append(f"kept failures: {len(surprises) - _NAMED} more")

    def _rewrite(self, path: Path) -> None:
        """Leave only the resumed cells in the file. Raises OSError.

        The file is replaced as a whole: its results must survive this session, too, if it is interrupted here.
        """
        wanted = set(self.resumed)
        with replacing(path) as sink:
            sink.write(f"{encode(self.run)}\n".encode())
            last = {one.nodeid: n for n, one in enumerate(each_record(path)) if isinstance(one, CellLine)}
            for number, record in enumerate(each_record(path)):
                if isinstance(record, GraphLine) and record.key not in self._graphs:
                    self._graphs.add(record.key)
                elif not isinstance(record, CellLine) or record.nodeid not in wanted or last[record.nodeid] != number:
                    continue
                sink.write(f"{encode(record)}\n".encode())

    def add_plan(self, selection: Selection) -> None:
        """Add planned cells; cells that are known already stay as they are."""
        for cell in selection.cells:
            self._plan.setdefault(cell.nodeid, cell.engine)
        if self.planned:
            return
        self.planned = True
        if self.settings.shard is not None:
            nodeids = [cell.nodeid for cell in selection.planned]
            digest = plan_digest(selection.planned)
            self._append(PlanLine(SCHEMA, str(self.settings.shard), digest, nodeids, selection.cut))

    def take_report(self, report: pytest.TestReport) -> None:
        """Read the record of a report, if it has one, and take it off: other reporters get no property of ours."""
        texts = [value for name, value in report.user_properties if name == PROPERTY]
        if texts:
            report.user_properties = [pair for pair in report.user_properties if pair[0] != PROPERTY]
        if report.when == "teardown" and report.nodeid in self._properties:
            report.user_properties += self._properties.pop(report.nodeid)
        # pytest-rerunfailures: the next report of this test has its record, and not its graph again
        again = report.outcome == "rerun"  # type: ignore[comparison-overlap]
        if texts:
            try:
                self._take(str(texts[-1]).split("\n"), only_graphs=again)
            except msgspec.DecodeError as exc:
                self.problems.append(f"unreadable record of {report.nodeid}: {exc}")
        elif report.failed and report.when not in ("setup", "call", "teardown"):
            # xdist says of a dead worker only which test it was running.
            engine = self._plan.get(report.nodeid)
            if engine is not None:
                cell = _cell(report.nodeid, engine)
                self._note(simple_record(cell, Status.CRASH, Stage.RUN, "WorkerCrash", str(report.longrepr)))

    def recover(self, lines: Iterable[str]) -> None:
        """Take the records of planned cells whose report did not arrive."""
        before = self.counts.total
        for line in lines:
            try:
                self._take([line], only_planned=True)
            except msgspec.DecodeError:
                continue  # a worker that was killed while it wrote
        count = self.counts.total - before
        if count:
            self.notes.append(f"{count} records were read from files of workers: their reports did not arrive")

    def _take(self, lines: Iterable[str], *, only_graphs: bool = False, only_planned: bool = False) -> None:
        """Take lines of records. Raises msgspec.DecodeError."""
        for line in lines:
            record = decode_line(line)
            if isinstance(record, GraphLine):
                if self.settings.report is not None and record.key not in self._graphs:
                    self._graphs.add(record.key)
                    self._append(line)
            elif isinstance(record, CellLine) and not only_graphs and (not only_planned or record.nodeid in self._plan):
                self._note(record, line)

    def finish(self, why_missing: str) -> None:
        """Give every planned cell without a record the status `not_run`, write the report, close the file."""
        self.why_missing = why_missing
        for nodeid, engine in self._plan.items():
            if engine is not None:
                self.missing.append(nodeid)
                self._note(simple_record(_cell(nodeid, engine), Status.NOT_RUN, Stage.SETUP, "NotRun", why_missing))
        if self._file is None:
            return
        try:
            if self.baseline is not None or self.settings.report is not None:
                self._conclude(StoredRecords(self._file))
            self._file.close()
        except (OSError, msgspec.DecodeError) as exc:
            self.problems.append(f"{self._file.path or 'records'}: {exc}")
        self._file = None

    def _conclude(self, stored: StoredRecords) -> None:
        """Compare with the baseline and write the report. Raises OSError, msgspec.DecodeError."""
        if self.baseline is not None:
            changes = compare_matrices(cells_of(self.baseline), cells_of(stored.records))
            self.notes.append(f"since the baseline: {count_changes(changes)}")
        if self.settings.report is not None:
            from pytest_t2n.report import Matrix, write_matrix

            before = Matrix.of(self.baseline) if self.baseline is not None else None
            try:
                write_matrix(Matrix.of_file(stored), self.settings.report, before)
            except OSError as exc:
                self.problems.append(f"report in {self.settings.report}: {exc.strerror or exc}")

    def _note(self, record: CellLine, line: str | None = None) -> None:
        """Take the record of a cell if it is the first; `line` is its JSON if that is known."""
        if self._plan.get(record.nodeid, record) is None:
            return
        self._count(record)
        if self.settings.junit_properties:
            self._properties[record.nodeid] = junit_properties(record)
        self._append(record if line is None else line)

    def _count(self, record: CellLine) -> None:
        self._plan[record.nodeid] = None
        self.counts.add(record)

    def _append(self, record: Record | str) -> None:
        """Write a record and flush; a full disk costs the file, never the session's other results."""
        if self._file is None:
            return
        line = record if isinstance(record, str) else encode(record)
        failure = self._file.append(line.encode())
        if failure is not None and self._file.path is not None:
            why = failure.strerror or failure
            self.problems.append(f"{self._file.path}: {why}; records from here on are not in the file")


def _cell(nodeid: str, engine: SelectedEngine) -> Cell:
    return Cell(nodeid, case_id(nodeid, engine.id), engine)


def is_done(line: CellLine) -> bool:
    """Return True if a resumed session can keep the record: the cell was run, and its worker did not die."""
    return line.status != "not_run" and (line.error is None or line.error.error_class != "WorkerCrash")


def _read_baseline(path: Path) -> list[Record]:
    words: dict[str, str] = {}
    records = each_record(path / MATRIX_FILE if path.is_dir() else path)
    try:
        return [_outline(record, words) for record in records if not isinstance(record, GraphLine | PlanLine)]
    except (OSError, RecordError) as exc:
        raise pytest.UsageError(f"--t2n-baseline: {exc}") from None


def _outline(record: Record, words: dict[str, str]) -> Record:
    return outline_of(record, words) if isinstance(record, CellLine) else record


def junit_properties(line: CellLine) -> list[tuple[str, object]]:
    """Return the properties of a cell for `--t2n-junit-properties`."""
    words = {"engine": line.engine, "status": line.status, "stage": line.stage, "level": line.level or ""}
    return [(f"t2n_{name}", word) for name, word in words.items() if word]


def _check_same(before: RunLine, now: RunLine, path: Path) -> None:
    """Raise pytest.UsageError if the results of two runs cannot stand in one matrix."""
    shas = {engine.title: engine.sha256 for engine in now.engines}
    changed = [engine.title for engine in before.engines if shas.get(engine.title, engine.sha256) != engine.sha256]
    here, there = now.platforms[0], platforms_of(before)
    changed += [name for one in there[:1] if one.key != here.key for name in differences(one, here)]
    if before.level != now.level:
        changed.append("--t2n-level")
    if changed:
        raise pytest.UsageError(f"--t2n-resume: {path} was made with another {', '.join(changed)}; start afresh")


__all__ = ["Ledger", "is_done", "junit_properties"]
