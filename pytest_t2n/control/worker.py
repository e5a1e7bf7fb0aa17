"""The role object of a worker of xdist: it sends its plan to the controller, and keeps a copy of each record."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import Any

import pytest

from pytest_t2n.collect.collection import CaseCollector
from pytest_t2n.collect.names import RUNNER
from pytest_t2n.collect.selection import Selection
from pytest_t2n.expect.entries import Expectations
from pytest_t2n.records.cell import SelectedEngine
from t2n_core.text import all_storable, text_of

WORKER_INPUT = "t2n"
"""Key of the plugin's part of xdist's `workerinput`."""
PROBLEMS = "t2n_problems"
"""Key of the plugin's part of xdist's `workeroutput`: lines that fail the session."""
RECORDS = ".records.jsonl"
"""Suffix of a worker's file of records."""


@dataclass(frozen=True, slots=True)
class WorkerInput:
    """Input of a worker from its controller."""

    engines: Sequence[SelectedEngine] = ()
    expectations: Expectations = field(default_factory=Expectations)
    done: Sequence[str] = ()
    """Node ids of cells that an interrupted session had finished."""
    durations: Mapping[str, float] = field(default_factory=dict)
    """Seconds by case, which balance shards."""
    folder: Path | None = None
    """The folder for the worker's plan and records."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as built-in types, the only types xdist can send."""
        return {
            "engines": [engine.to_dict() for engine in self.engines],
            "expectations": self.expectations.to_list(),
            "done": list(self.done),
            "durations": dict(self.durations),
            "folder": str(self.folder),
        }

    @classmethod
    def of(cls, config: pytest.Config) -> WorkerInput:
        """Return the input of this worker, empty if its controller has no engines."""
        fields = config.workerinput.get(WORKER_INPUT)  # type: ignore[attr-defined]
        if fields is None:
            return cls()
        engines = [SelectedEngine.from_dict(engine) for engine in fields["engines"]]
        expectations = Expectations.from_list(fields["expectations"])
        return cls(engines, expectations, fields["done"], fields["durations"], Path(fields["folder"]))


class Worker:
    """Role object of a worker with engines."""

    def __init__(self, name: str, folder: Path, collector: CaseCollector) -> None:
        self._name, self._folder, self._collector = name, folder, collector
        self._records: FileIO | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self) -> None:
        """Write the cells among the collected items to a file; the controller can guess them if this fails."""
        if self._collector.selection is None:
            return
        text = json.dumps(self._collector.selection.to_dict())
        try:
            plan_path(self._folder, self._name).write_text(text, encoding="utf-8")
        except OSError:
            return

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(self) -> Generator[None, Any, Any]:
        """Return the report with its lone surrogates escaped, since one of them would end the worker."""
        return all_storable((yield))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Send the problems of this process."""
        runner = session.config.pluginmanager.get_plugin(RUNNER)
        if runner is not None:
            session.config.workeroutput[PROBLEMS] = all_storable(runner.problems)  # type: ignore[attr-defined]

    def pytest_unconfigure(self) -> None:
        if self._records is not None:
            self._records.close()

    def take(self, report: pytest.TestReport, text: str) -> None:
        """Prepare a report for the controller; `text`, its records, is stored in case it gets lost.

        An interrupted controller stops reading, and loses the reports in transit.
        """
        if text:
            self._keep(text)
        report.user_properties = [(str(name), _portable(value)) for name, value in report.user_properties]

    def _keep(self, text: str) -> None:
        try:
            if self._records is None:
                self._records = (self._folder / f"{self._name}{RECORDS}").open("ab", buffering=0)
            self._records.write(f"{text}\n".encode())
        except OSError:
            return  # only the copy is lost


def plan_path(folder: Path, worker: str) -> Path:
    """Return the path of the plan that a worker writes."""
    return folder / f"{worker}.json"


def read_plan(folder: Path, worker: str, engines: Sequence[SelectedEngine], nodeids: Sequence[str]) -> Selection:
    """Return the selection of a worker; its cells share the texts of `nodeids`.

    Raises:
        OSError, ValueError, KeyError: the file is missing or damaged.
    """
    plan = json.loads(plan_path(folder, worker).read_text(encoding="utf-8"))
    return Selection.from_dict(plan, engines, nodeids)


def _portable(value: Any) -> Any:
    """Return the value of a user property in a type that execnet supports, a path or a numpy number as text.

    One unsupported value would end the worker and lose all later reports.
    """
    # By exact type: numpy.float64 is a float, but still not supported.
    if type(value) in (str, int, float, bool, bytes, type(None)):
        return value
    if type(value) in (list, tuple):
        return [_portable(item) for item in value]
    if type(value) is dict:
        return {text_of(key): _portable(item) for key, item in value.items()}
    return text_of(value)
