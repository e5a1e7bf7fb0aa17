"""The controller's book: which cells are planned, what became of each, and which are missing at the end."""

from __future__ import annotations

import os
import platform
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TextIO

import msgspec
import pytest

from pytest_t2n.cells import Cell
from pytest_t2n.engines import SelectedEngine
from pytest_t2n.evidence import PROPERTY, simple_record
from pytest_t2n.options import Settings
from pytest_t2n.records import (
    SCHEMA,
    CellLine,
    EngineLine,
    GraphLine,
    PlanLine,
    Record,
    RecordError,
    RunLine,
    cells_of,
    decode_lines,
    encode,
    graphs_of,
    read_records,
    with_graphs,
)
from pytest_t2n.selection import Selection, plan_digest

MATRIX_FILE = "matrix.jsonl"
_NAMED = 20
"""Kept failures that are named; the rest is a number."""
_DISTRIBUTIONS = ("pytest-t2n", "torch", "numpy", "nnef", "nnef-tools", "pytest", "pytest-xdist")


class Ledger:
    """One per session, in the process that sees all reports."""

    def __init__(self, settings: Settings, engines: Sequence[SelectedEngine], arguments: Sequence[str]) -> None:
        self.settings = settings
        self.run = _run_line(settings, engines, arguments)
        self.plan: dict[str, Cell] = {}
        self.cells: dict[str, CellLine] = {}
        self.graphs: dict[str, str] = {}
        """Texts by key; empty without a report, which alone shows them."""
        self.missing: list[CellLine] = []
        self.plan_line: PlanLine | None = None
        self.kept: list[CellLine] = []
        """What an interrupted session had done."""
        self.baseline: list[Record] | None = None
        """What an earlier run found, for `--t2n-baseline`."""
        self.selection: Selection | None = None
        """As the first worker saw it; all see the same."""
        self.notes: list[str] = []
        """What the summary says besides."""
        self.problems: list[str] = []
        """What went wrong with the records themselves; any makes the session fail."""
        self._file: TextIO | None = None

    @property
    def records(self) -> list[Record]:
        plan = [] if self.plan_line is None else [self.plan_line]
        return [self.run, *plan, *with_graphs(self.cells.values(), self.graphs)]

    def open(self) -> None:
        """Read the baseline, before it may be overwritten, and start `matrix.jsonl` in the report's directory.

        Raises:
            pytest.UsageError: the baseline cannot be read, or the directory cannot be written.
        """
        if self.settings.baseline is not None:
            self.baseline = _read_baseline(self.settings.baseline)
        if self.settings.report is None:
            return
        path = self.settings.report / MATRIX_FILE
        if self.settings.resume and path.exists():
            self._take_up(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if self.kept:
                # Not written in place: what was done must survive this session, too, if it is interrupted here.
                draft = path.with_name(f".{path.name}.draft")
                draft.write_text("".join(f"{encode(one)}\n" for one in self.records), encoding="utf-8")
                draft.replace(path)
            self._file = path.open("a" if self.kept else "w", encoding="utf-8")
        except OSError as exc:
            raise pytest.UsageError(f"--t2n-report={self.settings.report}: {exc.strerror or exc}") from None
        if not self.kept:
            self._append(self.run)

    def _take_up(self, path: Path) -> None:
        """Read what an interrupted session did with the same engines and packages.

        Raises:
            pytest.UsageError: it cannot be read, or was made with others.
        """
        try:
            records = read_records(path)
        except (OSError, RecordError) as exc:
            raise pytest.UsageError(f"--t2n-resume: {exc}") from None
        for run in records:
            if isinstance(run, RunLine):
                _check_same(run, self.run, path)
        self.kept = [line for line in cells_of(records) if is_done(line)]
        self.cells = {line.nodeid: line for line in self.kept}
        self.graphs = graphs_of(records)
        surprises = [line for line in self.kept if line.status not in ("pass", "skip") and not line.expected]
        if self.kept:
            self.notes.append(f"--t2n-resume: {len(self.kept)} cells kept, {len(surprises)} of them failed")
        self.problems += [f"kept failure: {line.nodeid}: {line.status} at {line.stage}" for line in surprises[:_NAMED]]
        if len(surprises) > _NAMED:
            self.problems.append(f"kept failures: {len(surprises) - _NAMED} more")

    def add_plan(self, selection: Selection) -> None:
        """More planned cells; those known already stay as they are."""
        for cell in selection.cells:
            self.plan.setdefault(cell.nodeid, cell)
        if self.selection is not None:
            return
        self.selection = selection
        if self.settings.shard is not None:
            nodeids = [cell.nodeid for cell in selection.planned]
            self.plan_line = PlanLine(SCHEMA, str(self.settings.shard), plan_digest(selection.planned), nodeids)
            self._append(self.plan_line)

    def take_report(self, report: pytest.TestReport) -> None:
        """Read the record of a report, if it has one, and take it off: other reporters get no property of ours."""
        texts = [value for name, value in report.user_properties if name == PROPERTY]
        if texts:
            report.user_properties = [pair for pair in report.user_properties if pair[0] != PROPERTY]
        if self.settings.junit_properties and report.when == "teardown" and report.nodeid in self.cells:
            report.user_properties += junit_properties(self.cells[report.nodeid])
        if report.outcome == "rerun":  # type: ignore[comparison-overlap]  # pytest-rerunfailures: another one follows
            return
        if texts:
            try:
                self._take(decode_lines(str(texts[-1])))
            except msgspec.DecodeError as exc:
                self.problems.append(f"unreadable record of {report.nodeid}: {exc}")
        elif report.failed and report.when not in ("setup", "call", "teardown") and report.nodeid in self.plan:
            # xdist says of a dead worker only which test it was running.
            self._note(simple_record(self.plan[report.nodeid], "crash", "run", "WorkerCrash", str(report.longrepr)))

    def recover(self, texts: Iterable[str]) -> None:
        """Take the records, one per text, of planned cells whose report did not arrive."""
        before = len(self.cells)
        for text in texts:
            try:
                lines = decode_lines(text)
            except msgspec.DecodeError:
                continue  # a worker that was killed while it wrote
            self._take(one for one in lines if not isinstance(one, CellLine) or one.nodeid in self.plan)
        count = len(self.cells) - before
        if count:
            self.notes.append(f"{count} records were read from files of workers: their reports did not arrive")

    def _take(self, lines: Iterable[Record]) -> None:
        for line in lines:
            if isinstance(line, GraphLine):
                self._note_graph(line)
            elif isinstance(line, CellLine):
                self._note(line)

    def finish(self, why_missing: str) -> None:
        """Give every planned cell without a record the status `not_run`, close the file, write the report."""
        for nodeid, cell in self.plan.items():
            if nodeid not in self.cells:
                line = simple_record(cell, "not_run", "setup", "NotRun", why_missing)
                self.missing.append(line)
                self._note(line)
        if self._file is not None:
            self._close()
        if self.baseline is not None:
            self.notes.append(_changes_note(self.baseline, self.cells.values()))
        if self.settings.report is not None:
            self._write_report(self.settings.report)

    def _note(self, line: CellLine) -> None:
        if line.nodeid in self.cells:
            return
        self.cells[line.nodeid] = line
        self._append(line)

    def _note_graph(self, line: GraphLine) -> None:
        if self.settings.report is not None and line.key not in self.graphs:
            self.graphs[line.key] = line.text
            self._append(line)

    def _append(self, record: Record) -> None:
        """Write and flush; a full disk costs the file, never the session's other results."""
        if self._file is None:
            return
        try:
            self._file.write(encode(record) + "\n")
            self._file.flush()
        except OSError as exc:
            self.problems.append(f"{self._file.name}: {exc.strerror or exc}; records from here on are not in the file")
            self._close()

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError as exc:
                self.problems.append(f"{file.name}: {exc.strerror or exc}")

    def _write_report(self, directory: Path) -> None:
        from pytest_t2n.report import write_report

        try:
            write_report(self.records, directory, self.baseline)
        except OSError as exc:
            self.problems.append(f"report in {directory}: {exc.strerror or exc}")


def is_done(line: CellLine) -> bool:
    """Whether a resumed session can keep the record: it was not run, or its worker died, is nothing to keep."""
    return line.status != "not_run" and (line.error is None or line.error.error_class != "WorkerCrash")


def _read_baseline(path: Path) -> list[Record]:
    try:
        return read_records(path / MATRIX_FILE if path.is_dir() else path)
    except (OSError, RecordError) as exc:
        raise pytest.UsageError(f"--t2n-baseline: {exc}") from None


def _changes_note(before: Iterable[Record], after: Iterable[CellLine]) -> str:
    """One line: what changed since the baseline."""
    from pytest_t2n.changes import Kind, compare_matrices

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
