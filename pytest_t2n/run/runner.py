"""The role objects that run cells and their tests, and detect returned models that are not checked."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Generator
from typing import Any

import pytest

from pytest_t2n.collect.collection import CaseCollector
from pytest_t2n.collect.names import takes_fixture
from pytest_t2n.config.settings import Settings
from pytest_t2n.run.cache import ExportCache
from pytest_t2n.run.calls.requests import NOT_MARKED, RETURNED_BESIDE_FIXTURE
from pytest_t2n.run.calls.verdicts import watched_raises
from pytest_t2n.run.cell_run import CellRun
from t2n_core.extras import paused_gc


class CellRunner:
    """Role object with one instance per process that runs tests: it creates a run for each test of a cell."""

    def __init__(self, settings: Settings, collector: CaseCollector) -> None:
        self._settings, self._collector = settings, collector
        self._cache = ExportCache()
        self._runs: dict[pytest.Item, CellRun] = {}
        self.late: dict[pytest.Item, CellRun] = {}
        """Runs in whose teardown a check failed, after the record of the test, until its report."""
        self.problems: list[str] = []
        """Lines that fail the session: about checks that ended after their tests, and files that were not written."""

    def run_of(self, item: pytest.Item) -> CellRun | None:
        """Return the run of an item between its setup and its teardown; None for a test that is not a cell."""
        return self._runs.get(item)

    def checks_returned(self, item: pytest.Function) -> bool:
        """Return whether an item is the cell of a test that returns its model."""
        return self.run_of(item) is not None and not takes_fixture(inspect.signature(item.obj).parameters)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Create the run for the test of a cell."""
        cell = self._collector.cell_of(item)
        if cell is not None:
            self._runs[item] = CellRun(item, cell, self._settings, self._cache, self.problems.append)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Record which failures of checks `pytest.raises` expects."""
        if self._collector.cell_of(item) is None:
            return (yield)

        def accept(error: BaseException) -> None:
            if (run := self.run_of(item)) is not None:
                run.verdicts.accept(error)

        with watched_raises(accept):
            return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        """Call a test that returns its model, and check the model."""
        run = self.run_of(pyfuncitem)
        if run is None or not self.checks_returned(pyfuncitem):
            return None
        # if a fixture of the test exports, the test itself may return nothing
        run.check_returned(pyfuncitem.obj, arguments_of(pyfuncitem), may_be_none=takes_fixture(pyfuncitem.fixturenames))
        return True

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Fail a test that passed, or was skipped, without the required checks."""
        run = self.run_of(item)
        if run is None:
            return (yield)
        run.is_called = True
        try:
            yield
            if why := run.why_unproven():
                pytest.fail(why, pytrace=False)
        except pytest.skip.Exception:
            run.require_no_failure()
            raise
        finally:
            run.is_called = False
            run.verdicts.record()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, None, None]:
        """Drop the run: items live as long as the session, and the contents of a run must not.

        Fail the teardown if a check failed meanwhile; its report then has another record of the test.
        """
        try:
            yield
        finally:
            run = self._runs.pop(item, None)
            why = ""
            if run is not None:
                run.close()
                why = run.verdicts.close()
        if run is not None and why:
            run.end_badly(why)
            self.late[item] = run
            pytest.fail(why, pytrace=False)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, None, None]:
        """Remove the archives of the session, and collect no garbage of PyTorch while plugins report its end."""
        self._cache.close()
        with paused_gc():
            yield


class ReturnedModels:
    """Role object with one instance per process that runs tests: a returned model that is not checked is a failure."""

    def __init__(self, runner: CellRunner) -> None:
        self._runner = runner

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Fail a test that returns a model and its inputs, but is not a case whose result is checked.

        Its function is wrapped before plugins that run coroutines do the same.
        """
        if not isinstance(item, pytest.Function) or self._runner.checks_returned(item):
            return (yield)
        returned: list[Any] = []
        function = item.obj
        item.obj = _noting(function, returned)
        try:
            yield
        finally:
            item.obj = function
        if any(map(_is_model_with_inputs, returned)):
            marked = self._runner.run_of(item) is not None
            pytest.fail(RETURNED_BESIDE_FIXTURE if marked else NOT_MARKED, pytrace=False)


def _noting(function: Any, returned: list[Any]) -> Any:
    """Return a function that does as the given one, and adds what that returns, or what its coroutine does."""
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            returned.append(await function(*args, **kwargs))
            return returned[-1]

        return awaited
    if inspect.isasyncgenfunction(function):
        return function

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        returned.append(function(*args, **kwargs))
        return returned[-1]

    return called


def arguments_of(function: pytest.Function) -> dict[str, Any]:
    """Return the fixtures and parameters that a test function takes."""
    arguments = {}
    for name, parameter in inspect.signature(function.obj).parameters.items():
        if name in function.funcargs and parameter.default is inspect.Parameter.empty:
            arguments[name] = function.funcargs[name]
    return arguments


def _is_model_with_inputs(value: Any) -> bool:
    module = getattr(sys.modules.get("torch.nn"), "Module", None)
    is_pair = isinstance(value, tuple | list) and len(value) == 2
    return module is not None and is_pair and isinstance(value[0], module)
