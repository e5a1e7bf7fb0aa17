"""The controller's book: which cells are planned, what became of each, and which are missing at the end."""

from __future__ import annotations

import os
import platform
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import msgspec
import pytest

from pytest_t2n.collect.cells import Cell, case_id
from pytest_t2n.collect.selection import Selection, plan_digest
from pytest_t2n.config.engines import SelectedEngine
from pytest_t2n.config.settings import Settings
from pytest_t2n.records.counts import Tally
from pytest_t2n.records.file import RecordFile, StoredRecords
from pytest_t2n.records.from_report import PROPERTY, simple_record
from pytest_t2n.records.schema import (
    SCHEMA,
    CellLine,
    EngineLine,
    GraphLine,
    PlanLine,
    Record,
    RecordError,
    RunLine,
    cells_of,
    decode_line,
    each_record,
    encode,
    outline_of,
)

MATRIX_FILE = "matrix.jsonl"
_NAMED = 20
"""Kept failures that are named; the rest is a number."""
_DISTRIBUTIONS = ("pytest-t2n", "torch", "numpy", "nnef", "nnef-tools", "pytest", "pytest-xdist")


class Ledger:
    """One per session, in the process that sees all reports.

    What it holds of a cell is its place in the plan: the records are in a file, and counted.
    """

    def __init__(self, settings: Settings, engines: Sequence[SelectedEngine], arguments: Sequence[str]) -> None:
        self.settings = settings
        self.run = _run_line(settings, engines, arguments)
        self.tally = Tally()
        self.missing: list[str] = []
        """Node ids of planned cells without a record."""
        self.why_missing = ""
        self.kept: list[str] = []
        """Node ids of what an interrupted session had done."""
        self.baseline: list[Record] | None = None
        """What an earlier run found, for `--t2n-baseline`; outlines."""
        self.planned = False
        """A worker has said what is planned; all say the same."""
        self.notes: list[str] = []
        """What the summary says besides."""
        self.problems: list[str] = []
        """What went wrong with the records themselves; any makes the session fail."""
        self._plan: dict[str, SelectedEngine | None] = {}
        """By node id, which is the very text that pytest has; None once the record is there."""
        self._graphs: set[str] = set()
        """Keys of those in the file."""
        self._properties: dict[str, list[tuple[str, object]]] = {}
        """For `--t2n-junit-properties`, of tests that are not torn down yet."""
        self._file: RecordFile | None = None

    def outlines(self) -> Iterator[CellLine]:
        """The cells so far, without their evidence, for what needs them at the end of a session."""
        records = self._file.records() if self._file is not None else ()
        return (outline_of(record) for record in records if isinstance(record, CellLine))

    @property
    def is_complete(self) -> bool:
        """Each planned cell has its record."""
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
            if self.kept:
                self._rewrite(path)
            self._file = RecordFile(path, append=bool(self.kept))
        except OSError as exc:
            raise pytest.UsageError(f"--t2n-report={self.settings.report}: {exc.strerror or exc}") from None
        if not self.kept:
            self._append(self.run)

    def _take_up(self, path: Path) -> None:
        """Read what an interrupted session did with the same engines and packages.

        Raises:
            pytest.UsageError: it cannot be read, or was made with others.
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
        kept = [line for line in done.values() if is_done(line)]
        for line in kept:
            self._count(line)
        self.kept = [line.nodeid for line in kept]
        surprises = [line for line in kept if line.status not in ("pass", "skip") and not line.expected]
        if kept:
            self.notes.append(f"--t2n-resume: {len(kept)} cells kept, {len(surprises)} of them failed")
        self.problems += [f"kept failure: {line.nodeid}: {line.status} at {line.stage}" for line in surprises[:_NAMED]]
        if len(surprises) > _NAMED:
            self.problems.append(f"kept failures: {len(surprises) - _NAMED} more")

    def _rewrite(self, path: Path) -> None:
        """Leave in the file what is kept of it. Raises OSError.

        Not written in place: what was done must survive this session, too, if it is interrupted here.
        """
        wanted = set(self.kept)
        draft = path.with_name(f".{path.name}.draft")
        with draft.open("w", encoding="utf-8") as sink:
            sink.write(f"{encode(self.run)}\n")
            last = {one.nodeid: n for n, one in enumerate(each_record(path)) if isinstance(one, CellLine)}
            for number, record in enumerate(each_record(path)):
                if isinstance(record, GraphLine) and record.key not in self._graphs:
                    self._graphs.add(record.key)
                elif not isinstance(record, CellLine) or record.nodeid not in wanted or last[record.nodeid] != number:
                    continue
                sink.write(f"{encode(record)}\n")
        draft.replace(path)

    def add_plan(self, selection: Selection) -> None:
        """More planned cells; those known already stay as they are."""
        for cell in selection.cells:
            self._plan.setdefault(cell.nodeid, cell.engine)
        if self.planned:
            return
        self.planned = True
        if self.settings.shard is not None:
            nodeids = [cell.nodeid for cell in selection.planned]
            self._append(PlanLine(SCHEMA, str(self.settings.shard), plan_digest(selection.planned), nodeids))

    def take_report(self, report: pytest.TestReport) -> None:
        """Read the record of a report, if it has one, and take it off: other reporters get no property of ours."""
        texts = [value for name, value in report.user_properties if name == PROPERTY]
        if texts:
            report.user_properties = [pair for pair in report.user_properties if pair[0] != PROPERTY]
        if report.when == "teardown" and report.nodeid in self._properties:
            report.user_properties += self._properties.pop(report.nodeid)
        # pytest-rerunfailures: another report of this test follows, which tells the same graph no more
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
                self._note(simple_record(cell, "crash", "run", "WorkerCrash", str(report.longrepr)))

    def recover(self, lines: Iterable[str]) -> None:
        """Take the records of planned cells whose report did not arrive."""
        before = self.tally.total
        for line in lines:
            try:
                self._take([line], only_planned=True)
            except msgspec.DecodeError:
                continue  # a worker that was killed while it wrote
        count = self.tally.total - before
        if count:
            self.notes.append(f"{count} records were read from files of workers: their reports did not arrive")

    def _take(self, lines: Iterable[str], *, only_graphs: bool = False, only_planned: bool = False) -> None:
        """Raises msgspec.DecodeError."""
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
                self._note(simple_record(_cell(nodeid, engine), "not_run", "setup", "NotRun", why_missing))
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
        """What the records say since the baseline, and the report. Raises OSError, msgspec.DecodeError: unreadable."""
        if self.baseline is not None:
            self.notes.append(_changes_note(self.baseline, cells_of(stored.records)))
        if self.settings.report is not None:
            from pytest_t2n.report import Matrix, write_matrix

            before = Matrix.of(self.baseline) if self.baseline is not None else None
            try:
                write_matrix(Matrix.of_file(stored), self.settings.report, before)
            except OSError as exc:
                self.problems.append(f"report in {self.settings.report}: {exc.strerror or exc}")

    def _note(self, record: CellLine, line: str | None = None) -> None:
        """Take the first record of a cell; `line` is its JSON, where that is there already."""
        if self._plan.get(record.nodeid, record) is None:
            return
        self._count(record)
        if self.settings.junit_properties:
            self._properties[record.nodeid] = junit_properties(record)
        self._append(record if line is None else line)

    def _count(self, record: CellLine) -> None:
        self._plan[record.nodeid] = None
        self.tally.add(record)

    def _append(self, record: Record | str) -> None:
        """Write and flush; a full disk costs the file, never the session's other results."""
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
    """Whether a resumed session can keep the record: it was not run, or its worker died, is nothing to keep."""
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


def _changes_note(before: Iterable[Record], after: Iterable[CellLine]) -> str:
    """One line: what changed since the baseline."""
    from pytest_t2n.records.changes import Kind, compare_matrices

    counts = Counter(change.kind for change in compare_matrices(cells_of(before), after))
    words = ", ".join(f"{counts[kind]} {kind.value}" for kind in Kind if counts[kind])
    return f"since the baseline: {words or 'nothing changed'}"


def junit_properties(line: CellLine) -> list[tuple[str, object]]:
    """For `--t2n-junit-properties`: a few words per cell."""
    words = {"engine": line.engine, "status": line.status, "stage": line.stage, "level": line.level or ""}
    return [(f"t2n_{name}", word) for name, word in words.items() if word]


def _check_same(before: RunLine, now: RunLine, path: Path) -> None:
    """Raises pytest.UsageError if the results of two runs cannot stand in one matrix."""
    shas = {engine.title: engine.sha256 for engine in now.engines}
    changed = [engine.title for engine in before.engines if shas.get(engine.title, engine.sha256) != engine.sha256]
    changed += [name for name, version in before.versions.items() if now.versions.get(name, version) != version]
    if before.level != now.level:
        changed.append("--t2n-level")
    if changed:
        raise pytest.UsageError(f"--t2n-resume: {path} was made with another {', '.join(changed)}; start afresh")


def package_versions() -> dict[str, str]:
    """Of Python and of the distributions that matter."""
    versions = {"python": platform.python_version()}
    for name in _DISTRIBUTIONS:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _run_line(settings: Settings, engines: Sequence[SelectedEngine], arguments: Sequence[str]) -> RunLine:
    return RunLine(
        schema=SCHEMA,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        engines=[engine_line(engine) for engine in engines],
        versions=package_versions(),
        platform=f"{sys.platform} {platform.machine()}, {os.cpu_count()} CPUs",
        level=settings.level.value,
        arguments=list(arguments),
    )


def engine_line(engine: SelectedEngine) -> EngineLine:
    """What the run line says of an engine."""
    resolved = engine.resolved or {}
    return EngineLine(
        engine.target,
        engine.version,
        engine.label,
        requested=engine.requested,
        kind=resolved.get("kind", ""),
        sha256=resolved.get("sha256", ""),
    )


__all__ = ["MATRIX_FILE", "Ledger", "engine_line", "is_done", "junit_properties", "package_versions"]
