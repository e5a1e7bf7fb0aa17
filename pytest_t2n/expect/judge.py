"""Judge a cell by the expectations: expected failures are xfails, all surprises fail."""

from __future__ import annotations

import msgspec
import pytest

from pytest_t2n.expect.entries import BEFORE_EXPORTS, FAILURES, Expectation, Expectations, can_be_expected
from pytest_t2n.expect.size import off_by, with_room
from pytest_t2n.records.schema import CellLine

ACCEPTED = "accepted now"
"""Prefix of `expected` in the record of a failure that `--t2n-accept` accepts."""


def judge(
    report: pytest.TestReport, record: CellLine, expectations: Expectations, *, accept: bool, strict: bool
) -> CellLine:
    """Change the report according to its cell's entry; return the record with `expected` filled in.

    Tests with an xfail mark and skipped tests stay unchanged. With `strict` a weak pass without an entry fails.
    """
    if hasattr(report, "wasxfail") or record.status in ("skip", "not_run"):
        return record
    entry = expectations.find(record.case, record.qualified_target, record.version, record.label)
    if entry is not None and entry.holds(record):
        _make_xfail(report, entry.why)
        return msgspec.structs.replace(record, expected=f"{entry.why} [{entry.place}]")
    if accept:
        if acceptable(record) and (report.failed or record.status == "weak"):
            _make_xfail(report, ACCEPTED)
            return msgspec.structs.replace(record, expected=ACCEPTED)
        return record
    text = "" if entry is None else _advice(entry, record)
    if entry is None and record.status == "weak" and strict and record.error is not None:
        text = f"--t2n-strict: {record.error.message}\n  hint: {record.error.hint}"
    if report.passed and text and record.status in ("pass", "weak"):
        report.outcome = "failed"
        report.longrepr = text
    elif report.failed and text:
        report.sections.append(("t2n expectation", text))
    return record


def acceptable(record: CellLine) -> bool:
    """Return whether a failure can be accepted: an error before any export is a broken test."""
    return record.status in FAILURES and record.stage not in BEFORE_EXPORTS and can_be_expected(record)


def _make_xfail(report: pytest.TestReport, reason: str) -> None:
    if report.failed:
        report.outcome = "skipped"
        report.wasxfail = reason


def _advice(entry: Expectation, record: CellLine) -> str:
    expected = f"{entry.place} expects {entry.describe()} of `{entry.case}` on {', '.join(entry.engines)}"
    if record.status == "pass":
        return (
            f"{record.case} passes on {record.engine}, and {expected}: {entry.why}\n"
            f"Remove the entry, or narrow its `case` or `engine` so that it leaves {record.engine} out; "
            f"--t2n-accept does it for you."
        )
    outcome = f"{record.status} at stage `{record.stage}`"
    keys: dict[str, str] = {"stage": record.stage, "status": record.status}
    if entry.error and record.error is not None:
        keys["error"] = record.error.error_class
        outcome += f" ({record.error.error_class})"
    written = [f'{name} = "{value}"' for name, value in keys.items()]
    if record.status == "mismatch":
        size = off_by(record)
        outcome += f", off by {size:g}"
        written.append(f"off_by = {with_room(size):g}")
    return (
        f"the result of this cell is not the expected one: {outcome}.\n"
        f"{expected}: {entry.why}\n"
        f"If that is now right, write {' and '.join(written)}; --t2n-accept does it for you."
    )
