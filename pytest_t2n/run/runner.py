"""The role object that runs cells: it gives each test of a cell its run, and calls tests that return a model."""

from __future__ import annotations

import inspect
from collections.abc import Generator
from typing import Any

import pytest

from pytest_t2n.collect.collection import CaseCollector
from pytest_t2n.collect.names import FIXTURE
from pytest_t2n.config.settings import Settings
from pytest_t2n.run.cache import ExportCache
from pytest_t2n.run.cell_run import CellRun


class CellRunner:
    """Role object with one instance per process that runs tests."""

    def __init__(self, settings: Settings, collector: CaseCollector) -> None:
        self._settings, self._collector = settings, collector
        self._cache = ExportCache()
        self._runs: dict[pytest.Item, CellRun] = {}

    def run_of(self, item: pytest.Item) -> CellRun | None:
        """Return the run of an item between its setup and its teardown; None for a test that is no cell."""
        return self._runs.get(item)

    def checks_returned(self, item: pytest.Function) -> bool:
        """Return whether an item is the cell of a test that returns its model."""
        return self.run_of(item) is not None and FIXTURE not in inspect.signature(item.obj).parameters

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Give the test of a cell its run."""
        cell = self._collector.cell_of(item)
        if cell is not None:
            self._runs[item] = CellRun(item, cell, self._settings, self._cache)

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        """Call a test that returns its model, and check the model."""
        run = self.run_of(pyfuncitem)
        if run is None or not self.checks_returned(pyfuncitem):
            return None
        # where a fixture of the test exports, the test itself may return nothing
        run.check_returned(pyfuncitem.obj, arguments_of(pyfuncitem), may_be_none=FIXTURE in pyfuncitem.fixturenames)
        return True

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Fail a test that ended well, or was skipped, without the checks that it asked for."""
        run = self.run_of(item)
        try:
            yield
        except pytest.skip.Exception:
            if run is not None:
                run.require_no_failure()
            raise
        if run is not None:
            run.require_check()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        """Drop the run: items live as long as the session, and what a cell holds must not."""
        run = self._runs.pop(item, None)
        if run is not None:
            run.close()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Remove the archives."""
        self._cache.close()


def arguments_of(function: pytest.Function) -> dict[str, Any]:
    """Return the fixtures and parameters that a test function takes."""
    taken = {}
    for name, parameter in inspect.signature(function.obj).parameters.items():
        if name in function.funcargs and parameter.default is inspect.Parameter.empty:
            taken[name] = function.funcargs[name]
    return taken


__all__ = ["CellRunner", "arguments_of"]
