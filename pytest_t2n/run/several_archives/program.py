"""The run of a cell whose model is a program of several archives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_t2n.collect.markers import CaseOptions
from pytest_t2n.config.settings import Settings
from pytest_t2n.records.cell import Cell
from pytest_t2n.run.calls.requests import TO_RETURN_PROGRAM
from pytest_t2n.run.exports.converter import target_of

if TYPE_CHECKING:
    from t2n_core.export.result import ExportResult
    from t2n_core.parity.outcome import Outcome
    from t2n_core.program import ProgramExport


def new_program(returned: Any) -> ProgramExport | Exception:
    """Return the export of the program that a test returned, or the error of its arguments."""
    from t2n_core.program import Program, ProgramExport

    __tracebackhide__ = True
    if not isinstance(returned, Program):
        pytest.fail(f"this test returned a {type(returned).__name__}: {TO_RETURN_PROGRAM}", pytrace=False)
    try:
        return ProgramExport(returned)
    except Exception as exc:
        return exc


def check_program(
    cell: Cell,
    settings: Settings,
    export: ProgramExport | Exception,
    *,
    options: CaseOptions,
    folder: Path,
    check: Callable[[ExportResult, CaseOptions], Outcome],
) -> Iterator[tuple[Outcome, ExportResult | None]]:
    """Yield the outcome of each archive, by `check`, and then the whole program's, without an archive.

    A failure of the export is one outcome.
    """
    from t2n_core.parity.outcome import Outcome

    seconds = settings.timeout if options.timeout is None else options.timeout
    try:
        if isinstance(export, Exception):
            raise export
        result = export.to(target_of(cell.engine, options, check_io=False), folder)
    except Exception as exc:
        yield Outcome.from_error(exc, "lower", engine=cell.engine.title), None
        return
    if not options.check:
        return
    for part in result.parts.values():
        yield check(part, options), part
    outcome = result.check_whole(options.judged_by.get("tolerance") or settings.level, timeout=seconds).outcome
    yield replace(outcome, engine=cell.engine.title), None
