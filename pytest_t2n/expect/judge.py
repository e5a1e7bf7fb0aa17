"""Judgement of a cell by the expectations: expected failures are xfails, all surprises fail."""

from __future__ import annotations

import msgspec
import pytest

from pytest_t2n.expect.entries import BEFORE_EXPORTS, FAILURES, Expectation, Expectations
from pytest_t2n.records.schema import CellLine

ACCEPTED = "accepted now"
"""Start of `expected` in the record of a failure that `--t2n-accept` writes down."""


def judge(report: pytest.TestReport, record: CellLine, expectations: Expectations, accept: bool) -> CellLine:
    """Change the report as the entry of its cell demands; return the record with `expected` filled in.

    A test with an xfail mark of its own, and one that was skipped, stays as it is.
    """
    if hasattr(report, "wasxfail") or record.status in ("skip", "not_run"):
        return record
    entry = expectations.find(record.case, record.target, record.version)
    if entry is not None and entry.holds(record.status, record.stage):
        _make_xfail(report, entry.why)
        return msgspec.structs.replace(record, expected=f"{entry.why} [{entry.place}]")
    if accept:
        if acceptable(record) and report.failed:
            _make_xfail(report, ACCEPTED)
            return msgspec.structs.replace(record, expected=ACCEPTED)
        return record
    if entry is None:
        return record
    text = _advice(entry, record)
    if report.passed and record.status == "pass":
        report.outcome = "failed"
        report.longrepr = text
    elif report.failed:
        report.sections.append(("t2n expectation", text))
    return record


def acceptable(record: CellLine) -> bool:
    """Return True for a failure that can be written down: an error before any export is a broken test, no limit."""
    return record.status in FAILURES and record.stage not in BEFORE_EXPORTS


def _make_xfail(report: pytest.TestReport, reason: str) -> None:
    if report.failed:
        report.outcome = "skipped"
        report.wasxfail = reason


def _advice(entry: Expectation, record: CellLine) -> str:
    said = (
        f"{entry.place} expects {entry.status} at stage `{entry.stage}` of `{entry.case}` on {', '.join(entry.engines)}"
    )
    if record.status == "pass":
        return (
            f"{record.case} passes on {record.engine}, and {said}: {entry.why}\n"
            f"Remove the entry, or narrow its `case` or `engine` so that it leaves {record.engine} out; "
            f"--t2n-accept does it for you."
        )
    return (
        f"this cell fails in another way than expected: {record.status} at stage `{record.stage}`.\n"
        f"{said}: {entry.why}\n"
        f'If that is right now, write stage = "{record.stage}" and status = "{record.status}"; '
        f"--t2n-accept does it for you."
    )


__all__ = ["ACCEPTED", "acceptable", "judge"]
