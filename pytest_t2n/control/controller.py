"""The role object of the process that sees all reports: it keeps the ledger, feeds workers and ends the session."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_t2n.collect.collection import CaseCollector
from pytest_t2n.collect.names import RUNNER
from pytest_t2n.collect.selection import Selection, ran_everything
from pytest_t2n.config.engines import cache_folder, header_line
from pytest_t2n.config.settings import Settings
from pytest_t2n.control.hooks import HookCalls
from pytest_t2n.control.ledger import Ledger
from pytest_t2n.control.summary import write_summary
from pytest_t2n.control.worker import PROBLEMS, RECORDS, WORKER_INPUT, WorkerInput, read_plan
from pytest_t2n.expect.entries import Expectation, ExpectationError, Expectations
from pytest_t2n.expect.unused import unused_entries
from pytest_t2n.records.cell import SelectedEngine, guess_plan
from t2n_core.scratch import ScratchFolder
from t2n_core.text import text_of

_SETTLED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)


class Controller:
    """Role object of a session with engines or a report, in the controller of xdist or in the only process."""

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        engines: Sequence[SelectedEngine],
        expectations: Expectations,
        ledger: Ledger,
        collector: CaseCollector,
        hooks: HookCalls,
    ) -> None:
        self._config, self._settings = config, settings
        self._engines, self._expectations = list(engines), expectations
        self._ledger, self._collector, self._hooks = ledger, collector, hooks
        self._folder: ScratchFolder | None = None
        """The folder in which workers write plans and records."""
        self._collected: list[str] | None = None
        """Node ids that the workers collected, equal for all; None before the first one has."""
        self._elsewhere = 0
        """Number of tests, if all of them are in other shards; otherwise 0."""
        self._unused: list[tuple[Expectation, str]] = []

    def pytest_report_header(self) -> str | None:
        """Return the engines of the session."""
        return header_line(self._engines, cache_folder(self._settings)) if self._engines else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self) -> None:
        """Use the plan of the only process."""
        if self._collector.selection is not None:
            self._take_plan(self._collector.selection)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the record of a report."""
        self._ledger.take_report(report)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """End the session before pytest-benchmark's own wrapper, which saves and compares."""
        self._ledger.settle()
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self._elsewhere:
            session.exitstatus = pytest.ExitCode.OK
            shard = self._settings.shard
            self._ledger.notes.append(f"shard {shard} is empty: all {self._elsewhere} tests are in other shards")
        if not self._settings.only_collects:
            if self._settings.benchmark:
                self._add_benchmarks()
            self._finish(session)
            if session.exitstatus == pytest.ExitCode.INTERNAL_ERROR:
                # pytest then prints no summaries, but missing cells must be reported
                write_summary(self._config.pluginmanager.getplugin("terminalreporter"), self._ledger)
        yield

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        write_summary(terminalreporter, self._ledger)

    def pytest_unconfigure(self) -> None:
        """Remove the workers' folder, and unlock the report's if the session did not end."""
        self._ledger.close()
        if self._folder is not None:
            self._folder.remove()
            self._folder = None

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Send the engines, the expectations, and a folder for its plan to a worker of xdist."""
        if self._folder is None:
            self._folder = ScratchFolder()
        worker_input = WorkerInput(
            self._engines, self._expectations, self._ledger.resumed, self._collector.durations, self._folder.path
        )
        node.workerinput[WORKER_INPUT] = worker_input.to_dict()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        """Read the planned cells from the file that a worker wrote before it reported the end of its collection.

        It is a file because nothing else reaches the controller before the first test runs, which may kill the worker.
        """
        if list(ids) != self._collected:
            self._collected = list(ids)
            self._take_plan(self._read_plan(node.workerinput["workerid"], ids))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Return the scheduler that keeps the engines of a case together, unless the user chose another."""
        if not self._engines or config.getoption("dist") != "load":
            return None
        from pytest_t2n.collect.scheduling import CaseScheduling

        return CaseScheduling(config, log, self._engines)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add the problems of a worker."""
        self._ledger.problems += getattr(node, "workeroutput", {}).get(PROBLEMS, ())

    def _take_plan(self, selection: Selection) -> None:
        """Add the planned cells; with the first plan also find the expectations that fit none of them."""
        self._elsewhere = selection.elsewhere
        self._engines += [engine for engine in selection.own_engines() if engine not in self._engines]
        if self._settings.only_collects:
            return
        if self._engines and not self._ledger.planned:
            everything = ran_everything(self._config)
            self._unused = unused_entries(self._expectations, selection, self._engines, everything=everything)
        self._ledger.add_plan(selection)

    def _read_plan(self, worker: str, nodeids: Sequence[str]) -> Selection:
        if self._folder is not None:
            try:
                return read_plan(self._folder.path, worker, self._engines, nodeids)
            except (OSError, ValueError, KeyError):
                pass  # a full disk, a remote worker
        cells = guess_plan(nodeids, self._engines)
        return Selection(cells, cells, partial=True)

    def _add_benchmarks(self) -> None:
        from pytest_t2n.run.benchmark import add_benchmarks, is_shared

        count = add_benchmarks(self._config, self._ledger.outlines())
        if count and is_shared(self._config):
            self._ledger.notes.append("--t2n-benchmark: workers shared the processors, the times are indicative")

    def _finish(self, session: pytest.Session) -> None:
        """Complete the ledger; the session fails if a planned cell is missing and the user did not stop it."""
        status = int(session.exitstatus)
        stopped = _why_stopped(session)
        if self._engines and session.exitstatus in _SETTLED:
            self._judge_expectations()
        if self._settings.bundle is not None and self._engines:
            self._finish_bundle(self._settings.bundle, stopped)
        if not self._ledger.is_complete:
            self._ledger.recover(self._worker_records())
        why_missing = f"the session stopped before it: {stopped}" if stopped else "no report of it arrived"
        crashed = status == pytest.ExitCode.INTERNAL_ERROR
        self._ledger.finish(why_missing, "an internal error of pytest" if crashed else stopped)
        if self._settings.report is not None:
            hook = self._config.hook.pytest_t2n_report
            results = self._hooks.call(hook, config=self._config, directory=self._settings.report)
            self._ledger.notes += [text_of(result) for result in results or () if result]
        self._ledger.problems += self._hooks.problems()
        runner = self._config.pluginmanager.get_plugin(RUNNER)
        self._ledger.problems += runner.problems if runner is not None else ()
        if status == pytest.ExitCode.OK:
            self._ledger.problems += self._ledger.contradictions()
        lost = bool(self._ledger.missing) and not stopped
        if (lost or self._ledger.problems) and status in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _judge_expectations(self) -> None:
        """Rewrite the files, or report the entries that fit no cell of this session."""
        ledger, settings = self._ledger, self._settings
        if not settings.accept:
            ledger.problems += [f"{entry.place}: {why}" for entry, why in self._unused]
            return
        from pytest_t2n.expect.accept import accept_results

        unused = [entry for entry, _ in self._unused]
        try:
            ledger.notes += accept_results(
                settings.expect, self._config.rootpath, ledger.cells(), self._engines, unused
            )
        except (OSError, ExpectationError) as exc:
            ledger.problems.append(f"--t2n-accept: {exc}")

    def _finish_bundle(self, bundle: Path, stopped: str) -> None:
        """Write the manifest of `--t2n-bundle`; `stopped` is why the session stopped early."""
        from pytest_t2n.run.bundles import finish_bundle

        try:
            count = finish_bundle(bundle, self._ledger.run, stopped)
            self._ledger.notes.append(f"bundle of {count} checks: t2n matrix run --bundle {bundle} --tract all")
        except OSError as exc:
            self._ledger.problems.append(f"--t2n-bundle: {exc}")

    def _worker_records(self) -> Iterator[str]:
        """Yield the lines that workers stored, since after an interrupt some reports never arrive."""
        for path in sorted(self._folder.path.glob(f"*{RECORDS}")) if self._folder is not None else ():
            try:
                with path.open(encoding="utf-8", newline="\n") as lines:
                    # A killed worker may have left an incomplete last line.
                    yield from (line[:-1] for line in lines if line.endswith("\n"))
            except (OSError, ValueError):
                continue


def _why_stopped(session: pytest.Session) -> str:
    """Return why tests may be missing although nothing was lost; '' if there is no such reason."""
    for reason in (session.shouldstop, session.shouldfail):
        if reason:
            return reason if isinstance(reason, str) else "asked to stop"
    return "interrupted" if session.exitstatus in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.USAGE_ERROR) else ""
