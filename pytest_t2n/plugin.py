"""The plugin's entry point: its options, its marker and fixtures, and the start of its role objects.

pytest loads this in every session of a user who has the plugin installed: each hook loads only the modules that it
needs, and nothing imports torch or numpy before the first cell runs. The role objects are separate plugins:

    Reports         here                     every session
    CaseCollector   collect/collection.py    every session
    CellRunner      run/runner.py            processes that run tests, in a session with engines
    Registrations   collect/registrations.py every session
    Recorder        control/recorder.py      the same
    Worker          control/worker.py        workers of xdist
    Controller      control/controller.py    the process that sees all reports
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

from pytest_t2n.collect.names import COLLECTOR, CONTROLLER, FILE, GENERATE, MARKER, PROGRAM, RECORDER, REPORTS, RUNNER
from pytest_t2n.config.settings import add_options
from t2n_core.errors import InputError

if TYPE_CHECKING:
    from pytest_t2n.config.settings import Settings
    from pytest_t2n.records.cell import SelectedEngine


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from pytest_t2n.config import hookspec

    pluginmanager.add_hookspecs(hookspec)


def _marker_lines(config: pytest.Config) -> tuple[str, ...]:
    """Return the markers, with their arguments only for `--markers`: these come from the options of an export."""
    if not config.getoption("markers", False):
        return (
            f"{MARKER}(...): exports what the test returns, and checks it",
            f"{GENERATE}(...): exports the model that the test returns, and checks the tokens that it generates",
            f"{PROGRAM}(...): exports the program of several models that the test returns, and checks it",
            f"{FILE}(...): checks an ONNX model or an archive that exists",
        )
    from pytest_t2n.collect.marker_help import file_help, generate_help, marker_help, program_help

    return marker_help(), generate_help(), program_help(), file_help()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Register for reports after plugins such as pytest-retry, which change them, and before the user's conftest.py."""
    early_config.pluginmanager.register(Reports(), REPORTS)


def pytest_configure(config: pytest.Config) -> None:
    if not config.pluginmanager.has_plugin(REPORTS):  # a conftest.py has loaded this module
        config.pluginmanager.register(Reports(), REPORTS)
    for line in _marker_lines(config):
        config.addinivalue_line("markers", line)
    if config.getoption("help", False):
        return  # pytest configures itself to print that, and no session follows
    from pytest_t2n.config.settings import read_settings

    with _usage_errors():
        settings = read_settings(config)
    config.pluginmanager.register(SessionStart(settings), "t2n-start")


@contextmanager
def _usage_errors() -> Iterator[None]:
    """Raise pytest.UsageError for a wrong option or setting."""
    try:
        yield
    except InputError as exc:
        raise pytest.UsageError(str(exc)) from None


def pytest_unconfigure(config: pytest.Config) -> None:
    if "t2n_core.engine.pool" in sys.modules:
        sys.modules["t2n_core.engine.pool"].close_all()
    if "t2n_core.engine.processes.jobs" in sys.modules:
        sys.modules["t2n_core.engine.processes.jobs"].close_jobs()
    storage: Any = getattr(getattr(config, "_benchmarksession", None), "storage", None)
    if hasattr(storage, "path"):
        with suppress(OSError):  # pytest-benchmark, which this plugin installs, makes the folder in every session
            storage.path.rmdir()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Explain how to select engines if tests were skipped because there are none."""
    if terminalreporter.stats.get("skipped") and not config.pluginmanager.has_plugin(CONTROLLER):
        from pytest_t2n.control.summary import write_summary

        write_summary(terminalreporter, None)


class Reports:
    """Passes each report to the recorder, after every other plugin has processed it.

    The recorder itself is registered after the user's conftest.py: its hook would run after the wrappers there, which
    would see the report before it is judged.
    """

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[Any]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        recorder = item.config.pluginmanager.get_plugin(RECORDER)
        if recorder is not None:
            recorder.take(item, call, report)
        return report


class SessionStart:
    """Registers the role objects when the session starts, which is when engines are provisioned."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @pytest.hookimpl(wrapper=True)
    def pytest_report_header(
        self, config: pytest.Config
    ) -> Generator[None, list[str | list[str]], list[str | list[str]]]:
        """Leave out the line of pytest-benchmark, which this plugin installs, where nobody asks for benchmarks."""
        lines = yield
        arguments = [*config.invocation_params.args, *config.getini("addopts"), os.environ.get("PYTEST_ADDOPTS", "")]
        if self._settings.benchmark or any("--benchmark" in str(argument) for argument in arguments):
            return lines
        return [line for line in lines if not str(line).startswith("benchmark: ")]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Register the roles of this process."""
        from pytest_t2n.collect.registrations import Registrations

        config, settings = session.config, self._settings
        config.pluginmanager.register(Registrations(), "t2n-registrations")
        if hasattr(config, "workerinput"):
            from pytest_t2n.control.start import start_worker

            start_worker(config, settings)
        elif settings.selects_engines or settings.report is not None:
            from pytest_t2n.control.start import start_controller

            with _usage_errors():
                start_controller(config, settings)
        else:
            from pytest_t2n.collect.collection import CaseCollector

            config.pluginmanager.register(CaseCollector(require=settings.require), COLLECTOR)


@pytest.fixture
def t2n_engine(request: pytest.FixtureRequest) -> SelectedEngine | None:
    """Return this test's engine; None in a test without an engine."""
    return getattr(request, "param", None)


@pytest.fixture
def nnef_rewriters() -> list[Any]:
    """Return the rewriters for the exports of a test; override it in a conftest.py, or append to the list in a test."""
    return []


@pytest.fixture
def nnef_export(request: pytest.FixtureRequest, t2n_engine: SelectedEngine | None) -> Any:
    """`nnef_export(model, args, *, kwargs=None, **options)`: export a model for the engine of this test.

    Returns an ExportResult; `assert_parity("close")` runs it in the engine and compares. Takes the options of the
    marker `nnef_export`, except target and versions.
    """
    return _run_of(request, t2n_engine).export


@pytest.fixture
def nnef_check(request: pytest.FixtureRequest, t2n_engine: SelectedEngine | None) -> Any:
    """`nnef_check(path, inputs=None, **options)`: check an ONNX model or an archive in the engine of this test.

    Returns the outcome, and fails the test unless it passes. `inputs` are what a test marked `nnef_file` returns; takes
    the options of this marker, except versions.
    """
    from pytest_t2n.run.file_check import FileChecker

    return FileChecker(_run_of(request, t2n_engine))


def _run_of(request: pytest.FixtureRequest, engine: SelectedEngine | None) -> Any:
    """Return the run of a test's cell; a test without an engine is skipped."""
    runner = request.config.pluginmanager.get_plugin(RUNNER)
    run = runner.run_of(request.node) if runner is not None else None
    if run is None or engine is None:
        pytest.skip("t2n: no engine selected; select with --t2n-tract=0.21,0.23 or --t2n-khronos")
    return run
