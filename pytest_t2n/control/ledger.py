"""The controller's ledger: the planned cells, the result of each, and the cells missing at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from pytest_t2n.collect.names import PROPERTY
from pytest_t2n.collect.selection import Selection, plan_line
from pytest_t2n.config.settings import Settings
from pytest_t2n.control.earlier import Interrupted, read_baseline
from pytest_t2n.control.run_file import RunFile
from pytest_t2n.records.cell import Cell, SelectedEngine
from pytest_t2n.records.counts import CellCounts
from pytest_t2n.records.file import decode_line
from pytest_t2n.records.folder import MATRIX_FILE, lock_folder
from pytest_t2n.records.from_outcome import simple_record
from pytest_t2n.records.index import RecordIndex, completeness_of
from pytest_t2n.records.nodeids import case_id
from pytest_t2n.records.outline import outline_of
from pytest_t2n.records.platform import this_platform
from pytest_t2n.records.run_line import engine_line, run_line
from pytest_t2n.records.schema import SCHEMA, CellLine, GraphLine, PlanLine, Record, RecordError, cells_of
from t2n_core.parity.stage import Stage, Status
from t2n_core.text import storable

_GOOD = ("pass", "skip")
_NAMED = 20
"""Most earlier failures that are listed; the others are counted."""


class Ledger:
    """Planned cells and their results, in the process that sees all reports.

    It holds only the position of a cell in the plan: the records are in a file, and counted.
    """

    def __init__(
        self,
        settings: Settings,
        engines: Sequence[SelectedEngine],
        arguments: Sequence[str],
        tell: Callable[..., object] = lambda record: None,
        *,
        root: Path = Path(),
        source: str = "",
        options: str = "",
        repeats: bool = False,
    ) -> None:
        """`source` is the digest of the tested code below `root`, `options` the digest of arguments that are not shown.

        `tell` is called with each record, as `record=`.

        With `repeats` cells run several times, as with `--dist each`: the worst record of each counts, at the end. A
        plan that names cells several times has the same effect.
        """
        self.settings, self._tell, self._root = settings, tell, root
        self._held: dict[str, CellLine] | None = {} if repeats else None
        self.run = run_line(
            engines, settings.level, arguments, transforms=settings.transforms, source=source, options=options
        )
        self.counts = CellCounts()
        self.missing: list[str] = []
        """Node ids of planned cells without a record."""
        self.why_missing = ""
        self.unmade: list[str] = []
        """Cells that markers require and that no engine of the session fits."""
        self.resumed: list[str] = []
        """Node ids of the cells that an interrupted session had finished."""
        self.baseline: list[Record] | None = None
        """Records of an earlier run, for `--t2n-baseline`; cells are outlines."""
        self.planned = False
        """True once there is a plan, which is the same for all workers."""
        self.notes: list[str] = []
        """Further lines of the summary."""
        self.problems: list[str] = []
        """Problems with the records themselves; any makes the session fail."""
        self._plan: dict[str, SelectedEngine | None] = {}
        """Engine by node id, the same object that pytest holds; None once the record is there."""
        self._properties: dict[str, list[tuple[str, object]]] = {}
        """Properties of tests before their teardown, for `--t2n-junit-properties`."""
        self._settling: dict[str, tuple[CellLine, str]] = {}
        """Records with their JSON, by node id, of tests whose teardown was not reported: it may replace them."""
        self._kept_plan: PlanLine | None = None
        """The plan of the interrupted session, which stands in the file."""
        self._file: RunFile | None = None
        self._lock = ExitStack()
        """Holds the lock of the report's directory."""

    def cells(self) -> Iterator[CellLine]:
        """Yield the cells so far."""
        records = self._file.records.records() if self._file is not None else ()
        return (record for record in records if isinstance(record, CellLine))

    def outlines(self) -> Iterator[CellLine]:
        """Yield outlines of the cells so far."""
        return map(outline_of, self.cells())

    @property
    def is_complete(self) -> bool:
        """Return whether each planned cell has a record."""
        return all(engine is None for engine in self._plan.values())

    def open(self) -> None:
        """Read the baseline, before it may be overwritten, and start `matrix.jsonl` in the report's directory.

        Without a report the records go to an unnamed file, if the end of the session needs them.

        Raises:
            pytest.UsageError: the baseline cannot be read, or the directory cannot be written, or another session does.
        """
        if self.settings.baseline is not None:
            self.baseline = read_baseline(self.settings.baseline, self.notes.append)
            notice = completeness_of(self.baseline).notice
            if notice:
                self.notes.append(f"the baseline is incomplete: {notice}")
        if self.settings.report is None:
            if self.settings.accept or self.settings.benchmark or self.baseline is not None:
                self._file = RunFile(None, self.run)
            return
        try:
            self._lock.enter_context(lock_folder(self.settings.report))
            resume = self.settings.resume
            self._file = RunFile(self.settings.report, self.run, resume=resume, accept=self._take_up, root=self._root)
            self._note_failure(self._file.failure)
        except BaseException as exc:
            self.close()
            if isinstance(exc, OSError | RecordError):
                why = exc.strerror if isinstance(exc, OSError) and exc.strerror else exc
                raise pytest.UsageError(f"--t2n-report={self.settings.report}: {why}") from None
            raise

    def close(self) -> None:
        """Close the file, and unlock its folder for other sessions."""
        if self._file is not None:
            self._file.records.close()
            self._file = None
        self._lock.close()

    def _take_up(self, earlier: Interrupted) -> None:
        """Count the results of an interrupted session, which are kept."""
        self.notes += [f"--t2n-resume: {problem}" for problem in earlier.torn]
        for line in earlier.cells:
            self._count(line)
        self.resumed = [line.nodeid for line in earlier.cells]
        if not earlier.cells:
            return
        self._kept_plan = earlier.plan
        harmless = _GOOD if self.settings.strict else (*_GOOD, "weak")
        surprises = [line for line in earlier.cells if line.status not in harmless and not line.expected]
        self.notes.append(f"--t2n-resume: {len(earlier.cells)} cells kept, {len(surprises)} of them failed")
        self.problems += [f"kept failure: {line.nodeid}: {line.status} at {line.stage}" for line in surprises[:_NAMED]]
        if len(surprises) > _NAMED:
            self.problems.append(f"kept failures: {len(surprises) - _NAMED} more")

    def add_plan(self, selection: Selection) -> None:
        """Add planned cells; known cells stay as they are.

        Raises pytest.UsageError if the interrupted session partitioned the shards differently.
        """
        earlier_cut = self._kept_plan.cut if self._kept_plan is not None else ""
        if earlier_cut and selection.cut and earlier_cut != selection.cut:
            raise pytest.UsageError("--t2n-resume: the shard is of other tests or --t2n-durations; start again")
        for cell in selection.cells:
            self._plan.setdefault(cell.nodeid, cell.engine)
        if self.planned:
            return
        if self._held is None and len({cell.nodeid for cell in selection.cells}) < len(selection.cells):
            self._held = {}  # --keep-duplicates runs a test as often as it is named
        self.planned = True
        lines = (engine_line(engine, this_platform()) for engine in selection.own_engines())
        if new_engines := [line for line in lines if line not in self.run.engines]:
            self.run.engines.extend(new_engines)
            if self._file is not None:
                self._file.replace_run(self.run)
        self.unmade = selection.unmade
        if self.unmade and self.settings.require:
            self.problems.append("--t2n-require: markers name targets that this session has no engine for")
        plan = plan_line(selection, self.settings.shard, self._plan)
        if plan != self._kept_plan:
            self._append(plan)

    def take_report(self, report: pytest.TestReport) -> None:
        """Read the record of a report, if it has one, and remove it, so that other reporters do not get it.

        It counts from the report of the teardown on, whose own record takes its place.
        """
        texts = [value for name, value in report.user_properties if name == PROPERTY]
        if texts:
            report.user_properties = [pair for pair in report.user_properties if pair[0] != PROPERTY]
        nodeid, is_end = storable(report.nodeid), report.when == "teardown"
        # "rerun" of pytest-rerunfailures: the next report of this test has its record, and not its graph again
        again = report.outcome not in ("passed", "failed", "skipped")
        if texts:
            try:
                self._take(str(texts[-1]).split("\n"), only_graphs=again, replaces=is_end)
            except msgspec.DecodeError as exc:
                self.problems.append(f"unreadable record of {report.nodeid}: {exc}")
        if is_end:
            self._settle(nodeid)
            report.user_properties += self._properties.pop(nodeid, [])
        elif not texts and report.failed and report.when not in ("setup", "call"):
            # for a dead worker xdist reports only the test that it was running
            self._settle(nodeid)
            engine = self._plan.get(nodeid)
            if engine is not None:
                cell = _cell(nodeid, engine)
                self._note(simple_record(cell, Status.CRASH, Stage.RUN, "WorkerCrash", str(report.longrepr)))

    def settle(self) -> None:
        """Count the records whose teardown was not reported, as at the end of an interrupted session."""
        for nodeid in [*self._settling]:
            self._settle(nodeid)

    def _settle(self, nodeid: str) -> None:
        if nodeid in self._settling:
            self._note(*self._settling.pop(nodeid))

    def recover(self, lines: Iterable[str]) -> None:
        """Add the records of planned cells whose report did not arrive."""
        before = self.counts.total
        for line in lines:
            try:
                self._take([line], only_planned=True)
                self.settle()
            except msgspec.DecodeError:
                continue  # a worker that was killed while it wrote
        count = self.counts.total - before
        if count:
            self.notes.append(f"{count} records were read from files of workers: their reports did not arrive")

    def _take(
        self, lines: Iterable[str], *, only_graphs: bool = False, only_planned: bool = False, replaces: bool = False
    ) -> None:
        """Add lines of records; with `replaces` they replace records of the same cell. Raises msgspec.DecodeError."""
        for line in lines:
            record = decode_line(line)
            if isinstance(record, GraphLine):
                if self.settings.report is not None:
                    self._append(record, line)
            elif isinstance(record, CellLine) and not only_graphs and (not only_planned or record.nodeid in self._plan):
                if replaces:
                    self._settling.pop(record.nodeid, None)
                self._settling.setdefault(record.nodeid, (record, line))

    def finish(self, why_missing: str, stopped: str = "") -> None:
        """Give every planned cell without a record the status `not_run`, write the end and the report, close the file.

        `stopped` is why the session stopped early, if it did.
        """
        self.why_missing = why_missing
        pending_records, self._held = self._held or {}, None
        for record in pending_records.values():
            self._note(record)
        if not self.run.engines and not self.planned:
            self._append(PlanLine(SCHEMA))  # without engines no collector writes a plan
        for nodeid, engine in self._plan.items():
            if engine is not None:
                self.missing.append(nodeid)
                self._note(simple_record(_cell(nodeid, engine), Status.NOT_RUN, Stage.SETUP, "NotRun", why_missing))
        if self._file is None:
            return
        self._note_failure(self._file.end(stopped))
        if self._file.records.is_lost:
            path = self._file.records.path
            self.problems.append(f"{path}: removed or replaced while the session ran, and with it the records")
        try:
            if self.baseline is not None or self.settings.report is not None:
                self._conclude(RecordIndex.of_file(self._file.records))
            self.close()
        except (OSError, msgspec.DecodeError) as exc:
            self.problems.append(f"{self.settings.report or 'records'}: {exc}")

    def contradictions(self) -> list[str]:
        """Return a line if cells failed and pytest counts no failure, which is so if a plugin changed reports."""
        counts = self.counts
        failed = counts.surprises - (0 if self.settings.strict else counts.weak_in_all) - len(self.missing)
        if failed <= 0 or self.resumed:
            return []
        return [f"{failed} cells failed, and pytest counts no failure: another plugin changed their reports"]

    def _conclude(self, records: RecordIndex) -> None:
        """Compare with the baseline and write the report. Raises OSError, msgspec.DecodeError."""
        if self.baseline is not None:
            from pytest_t2n.records.changes import compare_matrices, count_changes

            changes = compare_matrices(cells_of(self.baseline), map(outline_of, records.cells()))
            self.notes.append(f"since the baseline: {count_changes(changes)}")
        if self.settings.report is not None:
            from pytest_t2n.report.matrix import Matrix
            from pytest_t2n.report.write import write_matrix

            before = Matrix.of(self.baseline) if self.baseline is not None else None
            try:
                write_matrix(Matrix.of_index(records), self.settings.report, before)
            except OSError as exc:
                self.problems.append(f"report in {self.settings.report}: {exc.strerror or exc}")

    def _note(self, record: CellLine, line: str | None = None) -> None:
        """Add the record of a cell if it is the first; `line` is its JSON, if known."""
        if self._plan.get(record.nodeid, record) is None:
            return
        if self._held is not None:
            earlier = self._held.get(record.nodeid)
            if earlier is None or _badness(earlier) < _badness(record):
                self._held[record.nodeid] = record
            return
        size = self._file.records.size if self._file is not None else 0
        try:
            self._append(record, line)
        finally:  # Ctrl-C can come at any place: a record that counts must be in the file
            if self._file is not None and self._file.records.size == size:
                self._append(record, line)
            self._count(record)
        if self.settings.junit_properties:
            self._properties[record.nodeid] = junit_properties(record)
        self._tell(record=record)

    def _count(self, record: CellLine) -> None:
        self._plan[record.nodeid] = None
        self.counts.add(record)

    def _append(self, record: Record, line: str | None = None) -> None:
        if self._file is not None:
            self._note_failure(self._file.append(record, line))

    def _note_failure(self, failure: OSError | None) -> None:
        """Add a problem for a record that could not be written: a full disk costs the file, not the other results."""
        if failure is not None and self.settings.report is not None:
            why = failure.strerror or failure
            path = self.settings.report / MATRIX_FILE
            self.problems.append(f"{path}: {why}; records from here on are not in the file")


def _cell(nodeid: str, engine: SelectedEngine) -> Cell:
    return Cell(nodeid, case_id(nodeid, engine.id), engine)


def _badness(record: CellLine) -> int:
    """Return a number that is larger for more important results."""
    if record.status in _GOOD:
        return 0
    return 1 if record.status == Status.WEAK or record.expected else 2


def junit_properties(line: CellLine) -> list[tuple[str, object]]:
    """Return the properties of a cell for `--t2n-junit-properties`."""
    words = {"engine": line.engine, "status": line.status, "stage": line.stage, "level": line.level or ""}
    return [(f"t2n_{name}", word) for name, word in words.items() if word]
