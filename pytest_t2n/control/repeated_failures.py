"""Failures before any engine in pytest's summary: shown once, with the engines that they concern.

An error in a model or its capture is the same for each engine of a case. Each cell stays a failed test, also in counts.
"""

from __future__ import annotations

import copy
from collections.abc import Generator, Sequence
from typing import Any

import pytest

from pytest_t2n.records.schema import CellLine
from t2n_core.parity.stage import Stage, Status

_MARK = "t2n_before_engines"
_BEFORE_ENGINES = (Stage.INPUT, Stage.CAPTURE, Stage.LOWER, Stage.SPEC, Stage.WRITE)


class RepeatedFailures:
    """Role object of the process that prints the summary."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> Generator[None, None, None]:
        """Merge failures while pytest prints them; pytest's last line still counts all tests."""
        failed = terminalreporter.stats.get("failed")
        if failed:
            terminalreporter.stats["failed"] = merge_repeated(failed)
        try:
            yield
        finally:
            if failed:
                terminalreporter.stats["failed"] = failed


def mark_before_engines(report: pytest.TestReport, record: CellLine) -> None:
    """Mark the report of a failure before any engine with its case, cause and engine, which xdist sends along."""
    if (
        record.status in (Status.ERROR, Status.UNSUPPORTED)
        and record.stage in _BEFORE_ENGINES
        and record.error is not None
    ):
        key = f"{record.case}\0{record.stage}\0{record.error.message}"
        setattr(report, _MARK, [key, f"{record.qualified_target} {record.label}"])


def merge_repeated(reports: Sequence[Any]) -> list[Any]:
    """Return the reports without repetitions of an earlier failure before any engine.

    The first report names the engines of the others.
    """
    merged: dict[Any, list[tuple[Any, str]]] = {}
    for index, report in enumerate(reports):
        key, engine = getattr(report, _MARK, (index, ""))
        merged.setdefault(key, []).append((report, engine))
    return [_with_engines(*same[0], [engine for _, engine in same[1:]]) for same in merged.values()]


def _with_engines(report: Any, engine: str, others: Sequence[str]) -> Any:
    if not others:
        return report
    shown = copy.copy(report)
    shown.longrepr = _Shared(report.longrepr, [engine, *others])
    return shown


class _Shared:
    """The text of a failure, and the engines that it concerns."""

    def __init__(self, shown: Any, engines: Sequence[str]) -> None:
        self._shown, self._engines = shown, engines
        crash = getattr(shown, "reprcrash", None)
        if crash is not None:
            self.reprcrash = copy.copy(crash)
            self.reprcrash.message = f"in {len(engines)} engines: {crash.message}"

    def toterminal(self, writer: Any) -> None:
        if hasattr(self._shown, "toterminal"):
            self._shown.toterminal(writer)
        else:
            writer.line(str(self._shown))
        writer.line(f"  before any engine, so the same in {', '.join(self._engines)}")

    def __str__(self) -> str:
        return str(self._shown)
