"""The run of a cell whose test names a file: an ONNX model, or an archive of another exporter."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import pytest

from pytest_t2n.collect.judging import judgement_of
from pytest_t2n.collect.markers import CaseOptions, file_options
from pytest_t2n.config.engines import runner_of
from pytest_t2n.config.settings import Settings
from pytest_t2n.records.cell import Cell
from pytest_t2n.run.calls.requests import TO_RETURN_FILE
from t2n_core.check.file import CheckedFile, check_file, file_request, open_checked
from t2n_core.errors import InputError

if TYPE_CHECKING:
    from t2n_core.parity.outcome import Outcome
    from t2n_core.parity.request import CheckRequest
    from t2n_core.parity.samples import Array


class FileRun(Protocol):
    """The run of a cell, which collects outcomes."""

    item: pytest.Item
    cell: Cell
    settings: Settings

    def add(self, outcome: Outcome) -> None: ...


FileCheck: TypeAlias = "tuple[CheckedFile, CheckRequest] | Exception"


def new_file_check(returned: Any, path: Path, options: CaseOptions, settings: Settings) -> FileCheck:
    """Return the check of a file at the inputs that a test returned, or the error of the file or the inputs.

    A test returns nothing, inputs by name, a list of these, or a pair of such lists: inputs and expected outputs.
    """
    __tracebackhide__ = True
    sets = _arrays_of(returned)
    seconds = settings.timeout if options.timeout is None else options.timeout
    try:
        file = open_checked(path, options.sizes)
        criteria = judgement_of(options.judged_by, settings.level)
        inputs, expected = (
            [_in_order(arrays, names) for arrays in part] for part, names in zip(sets, file.names, strict=True)
        )
        return file, file_request(file, inputs, expected, "tract", criteria, seconds)
    except Exception as exc:
        return exc


def check_in_engine(check: FileCheck, cell: Cell) -> Iterator[tuple[Outcome, None]]:
    """Yield the outcome of a file in the engine of a cell."""
    from t2n_core.parity.outcome import Outcome

    if isinstance(check, Exception):
        outcome = Outcome.from_error(check, "load")
    else:
        file, request = check
        outcome = check_file(file, runner_of(cell.engine), cell.engine.target, request)
    yield replace(outcome, engine=cell.engine.title), None


class FileChecker:
    """The fixture `nnef_check`: checks files in the engine of a test, and records each outcome."""

    def __init__(self, run: FileRun) -> None:
        self._run = run

    def __call__(self, path: str | os.PathLike[str], inputs: Any = None, **options: Any) -> Outcome:
        """Return the outcome of a file, whose path is relative to the folder of the test's module.

        Raises:
            MarkerError: an option is unknown, or has a wrong value.
            pytest.fail.Exception: the check failed.
        """
        __tracebackhide__ = True
        run = self._run
        chosen = file_options({**options, "path": path})
        check = new_file_check(inputs, run.item.path.parent / chosen.file, chosen, run.settings)
        ((outcome, _),) = check_in_engine(check, run.cell)
        run.add(outcome)
        if not outcome.passed:
            pytest.fail(outcome.describe(), pytrace=False)
        return outcome


def _arrays_of(returned: Any) -> tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]]:
    """Return the sets of inputs and of expected outputs. Fails a test that returned anything else."""
    __tracebackhide__ = True
    pair = returned if isinstance(returned, tuple) and len(returned) == 2 else (returned, None)
    sets = [[] if part is None else [part] if isinstance(part, Mapping) else part for part in pair]
    if not all(isinstance(part, list) and all(isinstance(one, Mapping) for one in part) for part in sets):
        pytest.fail(f"this test returned a {type(returned).__name__}: {TO_RETURN_FILE}", pytrace=False)
    return sets[0], sets[1]


def _in_order(arrays: Mapping[str, Any], names: Sequence[str]) -> tuple[Array, ...]:
    """Return arrays by name in the order of the graph. Raises InputError for other names."""
    import numpy as np

    if set(arrays) != set(names):
        raise InputError(f"the test returned arrays for {', '.join(arrays)}, and the file has {', '.join(names)}")
    return tuple(np.asarray(arrays[name]) for name in names)
