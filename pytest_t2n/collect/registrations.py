"""Scope of the rewriters that test modules and conftests register: only their own tests see them."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest


class Registrations:
    """Limits the registries of rewriters, while a test runs, to what the test may see.

    That is what its module and the conftests of its folders registered, and what other code did: packages that a test
    imports register once per process. This imports nothing: if something is registered, its registry is loaded.
    """

    def __init__(self) -> None:
        self._modules: set[Path] = set()

    def pytest_collectstart(self, collector: pytest.Collector) -> None:
        """Store the modules of tests: a session may run only some of them."""
        if isinstance(collector, pytest.Module):
            self._modules.add(collector.path)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Run a test with the registrations of its modules, and undo the test's own registrations when it ends."""
        before = {registry: list(registry) for registry in _registries()}
        for registry, rewriters in before.items():
            registry.replace(r for r in rewriters if self._sees(item, Path(r.registered)))
        try:
            return (yield)
        finally:
            for registry in _registries():
                prior_rewriters = before.get(registry, [])
                imported = [r for r in registry if r not in prior_rewriters and not self._of_tests(Path(r.registered))]
                registry.replace([*prior_rewriters, *imported])

    def _of_tests(self, file: Path) -> bool:
        return file.name == "conftest.py" or file in self._modules

    def _sees(self, item: pytest.Item, file: Path) -> bool:
        if file.name == "conftest.py":
            return file.parent in item.path.parents
        return file == item.path or file not in self._modules


def _registries() -> tuple[Any, ...]:
    module = sys.modules.get("t2n_core.rewriter.registries")
    return () if module is None else module.REGISTRIES
