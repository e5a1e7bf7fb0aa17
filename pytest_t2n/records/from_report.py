"""Create records from the reports of a test, in the process that ran it."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pytest_t2n.records.cell import Cell
from pytest_t2n.records.from_outcome import outcome_record, simple_record
from pytest_t2n.records.schema import CellLine
from t2n_core.parity.stage import Stage, Status

if TYPE_CHECKING:
    import pytest

    from t2n_core.parity.outcome import Outcome

_PACKAGES = tuple(sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib"))
OP_PROPERTY, DTYPE_PROPERTY = "t2n_op", "t2n_dtype"
"""User properties by which a test declares its operator and its dtype."""


def record_of(
    cell: Cell,
    call: pytest.CallInfo[Any],
    report: pytest.TestReport,
    outcome: Outcome | None = None,
    *,
    exported: bool = False,
    expected: str = "",
) -> CellLine | None:
    """Return the record of a cell after one phase of its test; None if the phase does not decide it.

    `outcome` is the decisive one of the test's checks; `exported` is True if the test exported at all; `expected` is
    how the test says that it expects its failed checks.
    """
    import pytest

    if call.when == "setup":
        if report.skipped:
            reason = _skip_reason(report)
            return simple_record(cell, Status.SKIP, Stage.SETUP, "Skipped", reason, expected=_expectation(report))
        if report.failed and call.excinfo is not None:
            return _error_record(cell, call.excinfo.value, Stage.SETUP, report)
        return None
    if call.when != "call":
        return None
    # A test that passed when pytest-retry ran it again still has the error of its first attempt.
    error = call.excinfo.value if call.excinfo is not None and not report.passed else None
    if outcome is not None and (error is None or not outcome.passed):
        by_test = expected if report.passed and not outcome.passed else ""
        return outcome_record(cell, outcome, expected=_expectation(report) or by_test)
    if error is not None:
        if isinstance(error, pytest.skip.Exception):
            return simple_record(cell, Status.SKIP, Stage.SETUP, "Skipped", str(error))
        return _error_record(cell, error, Stage.COMPARE if outcome else Stage.SETUP, report)
    if exported:
        message = "exported, and the test did not check parity"
        return simple_record(cell, Status.SKIP, Stage.WRITE, "NotChecked", message)
    return simple_record(cell, Status.SKIP, Stage.SETUP, "NotExported", "the test did not export a model")


def with_subject(
    record: CellLine,
    properties: Mapping[str, object],
    *,
    ops: Sequence[str],
    dtype: str,
    graph: str,
    notes: Sequence[str] = (),
) -> CellLine:
    """Return the record with the operators, dtype, graph and notes of the export.

    `properties`, set by the test with `record_property`, take precedence. Notes of the record itself follow these.
    """
    return msgspec.structs.replace(
        record,
        op=str(properties.get(OP_PROPERTY, "")),
        ops=list(ops),
        dtype=str(properties.get(DTYPE_PROPERTY, dtype)),
        graph=graph,
        notes=[*notes, *record.notes],
    )


def with_relative_paths(record: CellLine, root: Path) -> CellLine:
    """Return the record with paths relative to the project or to the package, so that they are portable."""

    def relative(text: str) -> str:
        for folder in (str(root), *_PACKAGES):
            text = text.replace(f"{folder}{os.sep}", "")
        return text

    if record.notes:
        record = msgspec.structs.replace(record, notes=[relative(note) for note in record.notes])
    if record.error is None:
        return record
    texts = {name: relative(getattr(record.error, name)) for name in ("message", "source", "details")}
    return msgspec.structs.replace(record, error=msgspec.structs.replace(record.error, **texts))


def _error_record(cell: Cell, error: BaseException, stage: Stage, report: pytest.TestReport) -> CellLine:
    from t2n_core.parity.outcome import Outcome

    return outcome_record(cell, Outcome.from_error(error, stage), expected=_expectation(report))


def _expectation(report: pytest.TestReport) -> str:
    reason = getattr(report, "wasxfail", None)
    return "" if reason is None else f"xfail: {reason}".rstrip(": ")


def _skip_reason(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    return str(report.longrepr or "")
