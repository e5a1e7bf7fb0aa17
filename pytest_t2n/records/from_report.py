"""From a test's reports to the record of its cell, in the process that ran it."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pytest_t2n.collect.cells import Cell
from pytest_t2n.expect.entries import Expectations
from pytest_t2n.records.schema import SCHEMA, CellLine, ErrorLine, Record, StageName, StatusName, encode
from pytest_t2n.run.benchmark import FACT
from pytest_t2n.run.cell_run import CellRun
from pytest_t2n.run.export_summary import Contents

if TYPE_CHECKING:
    from t2n_core.check.outcome import Outcome


PROPERTY = "t2n"
"""Name of the one user property of a report: lines of JSON text, a cell behind its graph. Text, because anything else
that is not a builtin type makes execnet drop the report and all that follow."""
_PACKAGES = tuple(sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib"))
OP_PROPERTY, DTYPE_PROPERTY = "t2n_op", "t2n_dtype"
"""Properties by which a test says itself which operator, and which type, it is about."""
REUSED = "t2n_reused"
"""A fact of an outcome that was not computed in this session."""


def attach_record(
    report: pytest.TestReport,
    cell: Cell | None,
    run: CellRun | None,
    call: pytest.CallInfo[Any],
    expectations: Expectations,
    root: Path,
    *,
    accept: bool = False,
    told: dict[str, str] | None = None,
) -> str:
    """Put the record of a cell on the report of the phase that decides it, and judge both by what is expected.

    Gives the text that was put there, empty if this phase decides nothing. `told` are the graphs that this
    process has put on a report already, by key, with the cell that did it: only that one does so again, if it is rerun.
    """
    record = record_of(cell, run, call, report) if cell is not None else None
    if record is None:
        return ""
    if expectations or accept:
        from pytest_t2n.expect.judge import judge

        record = judge(report, record, expectations, accept)
    contents = run.decisive_contents() if run is not None else Contents()
    graph = contents.graph_line
    record = _described(record, contents, graph.key if graph is not None else "", dict(report.user_properties))
    record = _relative(record, root)
    lines: list[Record] = [record]
    if graph is not None and (told is None or told.setdefault(graph.key, record.nodeid) == record.nodeid):
        lines.insert(0, graph)
    text = "\n".join(map(encode, lines))
    report.user_properties.append((PROPERTY, text))
    return text


def _described(record: CellLine, contents: Contents, graph: str, properties: Mapping[str, object]) -> CellLine:
    """With what the case is about: from its export, and from what the test said with `record_property`."""
    return msgspec.structs.replace(
        record,
        op=str(properties.get(OP_PROPERTY, "")),
        ops=list(contents.ops),
        dtype=str(properties.get(DTYPE_PROPERTY, contents.dtype)),
        graph=graph,
    )


def _relative(record: CellLine, root: Path) -> CellLine:
    """With paths as the project says them: those of a machine mean nothing on another, and are nobody's business."""
    if record.error is None:
        return record
    texts = {name: getattr(record.error, name) for name in ("message", "source", "details")}
    for folder in (str(root), *_PACKAGES):
        texts = {name: text.replace(f"{folder}{os.sep}", "") for name, text in texts.items()}
    return msgspec.structs.replace(record, error=msgspec.structs.replace(record.error, **texts))


def record_of(
    cell: Cell, run: CellRun | None, call: pytest.CallInfo[Any], report: pytest.TestReport
) -> CellLine | None:
    """The record of a cell after one phase of its test; None if the phase says nothing yet."""
    if call.when == "setup":
        if report.skipped:
            return simple_record(cell, "skip", "setup", "Skipped", _reason(report), expected=_expectation(report))
        if report.failed and call.excinfo is not None:
            return _raised(cell, call.excinfo.value, "setup", report)
        return None
    if call.when != "call":
        return None
    outcome = run.outcome if run else None
    error = call.excinfo.value if call.excinfo is not None else None
    if outcome is not None and (error is None or not outcome.passed):
        expected = _expectation(report)
        if error is None and not outcome.passed and not expected:
            expected = "the test expects it"
        return outcome_record(cell, outcome, expected=expected)
    if error is not None:
        if isinstance(error, pytest.skip.Exception):
            return simple_record(cell, "skip", "setup", "Skipped", str(error))
        return _raised(cell, error, "compare" if outcome else "setup", report)
    if run is not None and run.exports:
        return simple_record(cell, "skip", "write", "NotChecked", "exported, and the test did not check parity")
    return simple_record(cell, "skip", "setup", "NotExported", "the test did not export a model")


def outcome_record(cell: Cell, outcome: Outcome, *, expected: str = "") -> CellLine:
    """The line of an outcome."""
    from t2n_core.check.outcome import plain

    fields = outcome.to_dict()
    del fields["engine"]
    facts: dict[str, Any] = dict(outcome.facts)
    more: dict[str, Any] = {
        "expected": expected,
        "reused": bool(facts.pop(REUSED, False)),
        "benchmark": facts.pop(FACT, None),
    }
    more["facts"] = plain(facts)
    return msgspec.convert({"type": "cell", **_identity(cell), **fields, **more}, CellLine)


def simple_record(
    cell: Cell, status: StatusName, stage: StageName, error_class: str, message: str, *, expected: str = ""
) -> CellLine:
    """The line of a cell that has no outcome of its own: skipped, not run, or lost with its worker."""
    error = ErrorLine(error_class, message)
    return CellLine(**_identity(cell), status=status, stage=stage, error=error, expected=expected)


def make_portable(report: pytest.TestReport) -> None:
    """Turn what a user property holds and execnet cannot carry into text.

    One such value, a path or a numpy number, would end the worker and drop all reports behind it.
    """
    report.user_properties = [(str(name), _portable(value)) for name, value in report.user_properties]


def _portable(value: Any) -> Any:
    # By exact type: numpy.float64 is a float, and still cannot be carried.
    if type(value) in (str, int, float, bool, bytes, type(None)):
        return value
    if type(value) in (list, tuple):
        return [_portable(item) for item in value]
    if type(value) is dict:
        return {str(key): _portable(item) for key, item in value.items()}
    return str(value)


def _raised(cell: Cell, error: BaseException, stage: StageName, report: pytest.TestReport) -> CellLine:
    from t2n_core.check.outcome import Outcome

    return outcome_record(cell, Outcome.from_error(error, stage), expected=_expectation(report))


def _identity(cell: Cell) -> dict[str, Any]:
    engine = cell.engine
    return {
        "schema": SCHEMA,
        "nodeid": cell.nodeid,
        "case": cell.case,
        "target": engine.target,
        "version": engine.version,
        "label": engine.label,
    }


def _expectation(report: pytest.TestReport) -> str:
    reason = getattr(report, "wasxfail", None)
    return "" if reason is None else f"xfail: {reason}".rstrip(": ")


def _reason(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    return str(report.longrepr or "")


__all__ = ["PROPERTY", "REUSED", "attach_record", "make_portable", "outcome_record", "record_of", "simple_record"]
