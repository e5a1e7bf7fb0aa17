"""The role object that records: it attaches the record of a cell to the decisive report, and judges both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from pytest_t2n.collect.collection import CaseCollector
from pytest_t2n.collect.names import PROPERTY
from pytest_t2n.control.reads import Reads
from pytest_t2n.control.repeated_failures import mark_before_engines
from pytest_t2n.control.worker import Worker
from pytest_t2n.expect.entries import Expectations
from pytest_t2n.expect.judge import judge
from pytest_t2n.records.file import encode
from pytest_t2n.records.from_outcome import outcome_record
from pytest_t2n.records.from_report import record_of, with_relative_paths, with_subject
from pytest_t2n.records.schema import CellLine, Record
from pytest_t2n.run.export_summary import ExportSummary
from pytest_t2n.run.runner import CellRunner


class Recorder:
    """Role object with one instance per process that runs tests."""

    def __init__(
        self,
        collector: CaseCollector,
        runner: CellRunner,
        expectations: Expectations,
        root: Path,
        *,
        accept: bool = False,
        strict: bool = False,
        worker: Worker | None = None,
        reads: Reads | None = None,
    ) -> None:
        self._collector, self._runner = collector, runner
        self._expectations, self._accept, self._strict = expectations, accept, strict
        self._root, self._worker, self._reads = root, worker, reads
        self._reported_graphs: dict[str, str] = {}
        """Node id of the cell with which each graph was reported, by the graph's key."""

    def pytest_sessionfinish(self) -> None:
        """Note no more files."""
        if self._reads is not None:
            self._reads.stop()

    def take(self, item: pytest.Item, call: pytest.CallInfo[Any], report: pytest.TestReport) -> None:
        """Attach the record to a new report, and judge both."""
        text = self._attach(item, call, report)
        if self._worker is not None:
            self._worker.take(report, text)

    def _attach(self, item: pytest.Item, call: pytest.CallInfo[Any], report: pytest.TestReport) -> str:
        """Return the text that was attached to the report, or '' if this phase does not decide the cell.

        A graph is sent once per process, and again only if the test that sent it is rerun.
        """
        cell, run = self._collector.cell_of(item), self._runner.run_of(item)
        if cell is None:
            return ""
        record: CellLine | None
        late = self._runner.late.pop(item, None) if call.when == "teardown" else None
        if late is not None and late.outcome is not None:
            run, record = late, outcome_record(cell, late.outcome)
        elif run is None:
            record = record_of(cell, call, report)
        elif run.is_called:  # the report of a subtest
            if report.failed:
                run.fail_part(str(report.longrepr))
            return ""
        else:
            if call.when == "call" and report.passed and (why := run.why_unproven()):
                report.outcome, report.longrepr = "failed", why  # another plugin made a failure a pass
            expected = run.verdicts.expected
            record = record_of(cell, call, report, run.outcome, exported=bool(run.exports), expected=expected)
        if record is None:
            return ""
        if run is not None:
            run.verdicts.record()
        if self._expectations or self._accept or self._strict:
            record = judge(report, record, self._expectations, accept=self._accept, strict=self._strict)
        summary = run.decisive_summary() if run is not None else ExportSummary()
        graph = summary.graph_line
        record = with_subject(
            record,
            dict(report.user_properties),
            ops=summary.ops,
            dtype=summary.dtype,
            graph=graph.key if graph is not None else "",
            notes=summary.notes,
        )
        record = with_relative_paths(record, self._root)
        if self._reads is not None:
            record = msgspec.structs.replace(record, reads=self._reads.of_cell(record.nodeid))
        lines: list[Record] = [record]
        if graph is not None and self._reported_graphs.setdefault(graph.key, record.nodeid) == record.nodeid:
            lines.insert(0, graph)
        _put_cause_first(report, record)
        mark_before_engines(report, record)
        text = "\n".join(map(encode, lines))
        report.user_properties.append((PROPERTY, text))
        return text


def _put_cause_first(report: pytest.TestReport, record: CellLine) -> None:
    """Give pytest's short summary the cause of a failure, without the common prefix of all failures."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None and crash.message.startswith(f"Failed: {record.status} at stage"):
        from pytest_t2n.report.causes import message_gist

        crash.message = message_gist(record)
