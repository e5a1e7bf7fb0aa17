"""The role object that looks for models among the results of tests that nothing checks."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Generator
from typing import Any

import pytest

from pytest_t2n.run.calls.requests import NOT_MARKED, RETURNED_BESIDE_FIXTURE
from pytest_t2n.run.runner import CellRunner


class ReturnedModels:
    """Role object with one instance per process that runs tests: a returned model that nothing checks is a failure."""

    def __init__(self, runner: CellRunner) -> None:
        self._runner = runner

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        """Fail a test that returns a model and its inputs, and is no case that is checked by what it returns."""
        function = pyfuncitem.obj
        is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
        if is_async or self._runner.checks_returned(pyfuncitem):
            return (yield)
        returned: list[Any] = []

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            returned.append(function(*args, **kwargs))
            return returned[-1]

        pyfuncitem.obj = call
        try:
            result = yield
        finally:
            pyfuncitem.obj = function
        if any(map(_is_model_with_inputs, returned)):
            marked = self._runner.run_of(pyfuncitem) is not None
            pytest.fail(RETURNED_BESIDE_FIXTURE if marked else NOT_MARKED, pytrace=False)
        return result


def _is_model_with_inputs(value: Any) -> bool:
    module = getattr(sys.modules.get("torch.nn"), "Module", None)
    is_pair = isinstance(value, tuple | list) and len(value) == 2
    return module is not None and is_pair and isinstance(value[0], module)


__all__ = ["ReturnedModels"]
