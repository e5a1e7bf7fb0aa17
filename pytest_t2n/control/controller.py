"""The plugin's state in a pytest session: the controller (or only process) keeps the book, workers run cells."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from pytest_t2n.collect.cells import guess_plan
from pytest_t2n.collect.names import (
    CONTROLLER,
    ENGINES,
    EXPECTATIONS,
    KEPT,
    SELECTION,
    SETTINGS,
    worker_input,
)
from pytest_t2n.collect.selection import Selection, ran_everything, take_part
from pytest_t2n.config.engines import SelectedEngine, select_engines
from pytest_t2n.expect.entries import Expectation, ExpectationError, Expectations, read_expectations

_KEPT = ".records.jsonl"
"""End of the name of a worker's file of records."""


class Controller:
    """What the process that sees all reports does at the ends of a session."""

    def __init__(self, config: pytest.Config, engines: Sequence[SelectedEngine]) -> None:
        from pytest_t2n.control.ledger import Ledger

        self.config = config
        self.engines = engines
        # As the project says them: a published report shall not show where it lies on one machine.
        arguments = [str(one).replace(f"{config.rootpath}{os.sep}", "") for one in config.invocation_params.args]
        self.ledger = Ledger(config.stash[SETTINGS], engines, arguments)
        self._plans: Path | None = None
        self._collected: list[str] = []
        """What the workers collected; each of them the same."""
        self._idle: list[tuple[Expectation, str]] = []

    def worker_input(self) -> dict[str, Any]:
        """What a worker needs, in built-in types: the frozen engines, and where to write its plan."""
        if self._plans is None:
            self._plans = Path(tempfile.mkdtemp(prefix="t2n-plans-"))
        return {
            "engines": [engine.to_dict() for engine in self.engines],
            "expectations": self.config.stash[EXPECTATIONS].to_list(),
            "done": self.ledger.kept,
            "plans": str(self._plans),
        }

    def take_collection(self, worker_id: str, nodeids: Sequence[str]) -> None:
        """Learn the planned cells from the file that the worker wrote before it said that it had collected.

        A file, because nothing else reaches the controller before the first test runs, and that may kill the worker.
        """
        if list(nodeids) != self._collected:
            self._collected = list(nodeids)
            self.take_plan(self._read_plan(worker_id, nodeids))

    def take_plan(self, selection: Selection) -> None:
        """What shall run; of the first worker also which expectations speak of nothing in it."""
        from pytest_t2n.expect.accept import idle_entries

        expectations = self.config.stash[EXPECTATIONS]
        if self.engines and not self.ledger.planned:
            everything = ran_everything(self.config)
            self._idle = idle_entries(expectations, selection, self.engines, everything=everything)
        self.ledger.add_plan(selection)

    def judge_expectations(self, session: pytest.Session) -> None:
        """Rewrite the files, or name the entries that speak of nothing in this session."""
        from pytest_t2n.expect.accept import accept_results

        ledger = self.ledger
        settled = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
        if not self.engines or session.exitstatus not in settled:
            return
        settings = self.config.stash[SETTINGS]
        if not settings.accept:
            ledger.problems += [f"{entry.place}: {why}" for entry, why in self._idle]
            return
        idle = [entry for entry, _ in self._idle]
        try:
            ledger.notes += accept_results(settings.expect, self.config.rootpath, ledger.outlines(), self.engines, idle)
        except (OSError, ExpectationError) as exc:
            ledger.problems.append(f"--t2n-accept: {exc}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A hook of this object and not of the plugin's module, because it is not told whose session it is."""
        self.ledger.take_report(report)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """In front of pytest-benchmark's own wrapper, which saves and compares."""
        if self.config.stash[SETTINGS].benchmark and not self.config.getoption("collectonly", False):
            from pytest_t2n.run.benchmark import add_benchmarks, is_shared

            count = add_benchmarks(self.config, self.ledger.outlines())
            if count and is_shared(self.config):
                self.ledger.notes.append("--t2n-benchmark: workers shared the processors, the times are indicative")
        yield

    def finish(self, session: pytest.Session) -> None:
        """Settle the book; the session fails if a planned cell is missing without the user having stopped it."""
        status = int(session.exitstatus)
        stopped = _why_stopped(session)
        self.judge_expectations(session)
        self.finish_bundle()
        if not self.ledger.is_complete:
            self.ledger.recover(self._read_kept())
        self.ledger.finish(stopped or "no report of it arrived")
        lost = bool(self.ledger.missing) and not stopped
        settled = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        if (lost or self.ledger.problems) and status in settled:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def finish_bundle(self) -> None:
        """Write the manifest of `--t2n-bundle`."""
        bundle = self.config.stash[SETTINGS].bundle
        if bundle is None or not self.engines:
            return
        from pytest_t2n.run.bundles import finish_bundle

        try:
            count = finish_bundle(bundle, self.ledger.run)
            self.ledger.notes.append(f"bundle of {count} checks: t2n matrix run --bundle {bundle} --tract all")
        except OSError as exc:
            self.ledger.problems.append(f"--t2n-bundle: {exc}")

    def close(self) -> None:
        if self._plans is not None:
            shutil.rmtree(self._plans, ignore_errors=True)
            self._plans = None

    def _read_kept(self) -> Iterator[str]:
        """What workers wrote beside sending it: an interrupt leaves reports behind that are on their way."""
        for path in sorted(self._plans.glob(f"*{_KEPT}")) if self._plans is not None else ():
            try:
                with path.open(encoding="utf-8", newline="\n") as lines:
                    # Behind the last line end stands what a killed worker did not finish.
                    yield from (line[:-1] for line in lines if line.endswith("\n"))
            except (OSError, ValueError):
                continue

    def _read_plan(self, worker_id: str, nodeids: Sequence[str]) -> Selection:
        if self._plans is not None:
            try:
                plan = json.loads((self._plans / f"{worker_id}.json").read_text(encoding="utf-8"))
                return Selection.from_dict(plan, self.engines, nodeids)
            except (OSError, ValueError, KeyError):
                pass  # a full disk, a remote worker
        cells = guess_plan(nodeids, self.engines)
        return Selection(cells, cells, partial=True)


def start(config: pytest.Config) -> None:
    """Resolve the engines and open the book; a session without engines gets none, and pays for none.

    Raises:
        pytest.UsageError: an engine that cannot be had, a report directory that cannot be written, a wrong
            expectation.
    """
    settings = config.stash[SETTINGS]
    config.stash[EXPECTATIONS] = Expectations()
    engines = select_engines(settings, _progress(config)) if settings.selects_engines else []
    config.stash[ENGINES] = engines
    if engines and settings.expect:
        try:
            found = read_expectations(settings.expect, config.rootpath, missing_ok=settings.accept)
        except ExpectationError as exc:
            raise pytest.UsageError(f"--t2n-expect: {exc}") from None
        config.stash[EXPECTATIONS] = found
    if not engines and settings.report is None:
        return
    if settings.bundle is not None:
        from pytest_t2n.run.bundles import start_bundle

        start_bundle(settings.bundle)
    controller = Controller(config, engines)
    if not config.getoption("collectonly", False):
        controller.ledger.open()
    config.stash[CONTROLLER] = controller
    config.pluginmanager.register(controller, "t2n-controller")


def start_worker(config: pytest.Config) -> None:
    """Take over the engines that the controller resolved."""
    given = worker_input(config)
    config.stash[ENGINES] = [SelectedEngine.from_dict(engine) for engine in given.get("engines", ())]
    config.stash[EXPECTATIONS] = Expectations.from_list(given.get("expectations", ()))


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take this session's part of the collected tests."""
    if config.stash[ENGINES]:
        controller = config.stash.get(CONTROLLER, None)
        done = controller.ledger.kept if controller else worker_input(config).get("done", ())
        take_part(config, items, config.stash[SETTINGS].shard, done)


def write_plan(config: pytest.Config) -> None:
    """Tell the controller which of the collected items are cells; it can guess where this fails."""
    given = worker_input(config)
    if "plans" not in given or SELECTION not in config.stash:
        return
    plan = config.stash[SELECTION].to_dict()
    try:
        name = f"{config.workerinput['workerid']}.json"  # type: ignore[attr-defined]
        (Path(given["plans"]) / name).write_text(json.dumps(plan), encoding="utf-8")
    except OSError:
        return


def keep_record(config: pytest.Config, text: str) -> None:
    """Write a record down in this worker, in case its report does not arrive; costs nothing but the record if it fails.

    A controller that is interrupted stops reading, and takes what is on the wire with it.
    """
    given = worker_input(config)
    if not text or "plans" not in given:
        return
    try:
        if KEPT not in config.stash:
            name = f"{config.workerinput['workerid']}{_KEPT}"  # type: ignore[attr-defined]
            config.stash[KEPT] = (Path(given["plans"]) / name).open("ab", buffering=0)
        config.stash[KEPT].write(f"{text}\n".encode())
    except OSError:
        return


def _why_stopped(session: pytest.Session) -> str:
    """Why tests may be missing although nothing was lost; empty if there is no such reason."""
    for reason in (session.shouldstop, session.shouldfail):
        if reason:
            return f"the session stopped before it: {reason if isinstance(reason, str) else 'asked to stop'}"
    if session.exitstatus in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.USAGE_ERROR):
        return "the session was interrupted before it"
    return ""


def _progress(config: pytest.Config) -> Any:
    """Say what is downloaded: the first session of a machine would else seem to hang."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    turn = Lock()  # engines are fetched by several threads, and a line is two writes

    def say(version: str, event: str) -> None:
        if reporter is not None and event != "ready":
            with turn:
                reporter.write_line(f"t2n: {event} tract {version}")

    return say


__all__ = ["Controller", "keep_record", "select", "start", "start_worker", "write_plan"]
