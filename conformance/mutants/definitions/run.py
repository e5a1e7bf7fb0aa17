"""The tests of the definitions against their mutants: in one process, a fork for each mutant."""

from __future__ import annotations

import os
import pkgutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from itertools import starmap, zip_longest
from types import FrameType, FunctionType, ModuleType
from typing import Any, Final

import pytest
from _pytest.runner import runtestprotocol

from conformance.mutants.definitions.mutate import Mutant, mutants_of
from conformance.mutants.definitions.replies import kept_replies

PACKAGE: Final = "t2n_core.dialect.meaning"
TESTS: Final = (
    "tests/unit/dialect/meaning",
    "tests/contract/dialect/test_standard.py",
    "tests/contract/dialect/test_operators.py",
    "tests/contract/dialect/test_against_pytorch.py",
)
"""Tests that call the definitions."""
_SECONDS: Final = 60
"""Time after which a mutant that does not end counts as caught."""

Functions = dict[str, FunctionType]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant."""

    mutant: Mutant
    caught: bool
    tests: int
    """Number of tests that call the function."""


def functions_of(package: str = PACKAGE) -> Functions:
    """Return the functions and methods of a package by module and qualified name."""
    root = import_module(package)
    modules = [import_module(one.name) for one in pkgutil.walk_packages(root.__path__, f"{package}.")]
    return {f"{module.__name__}:{one.__qualname__}": one for module in modules for one in _own(module)}


def _own(module: ModuleType) -> Iterator[FunctionType]:
    for value in vars(module).values():
        members = vars(value).values() if isinstance(value, type) else [value]
        for member in members:
            function = member.fget if isinstance(member, property) else member
            own = isinstance(function, FunctionType) and function.__code__.co_filename == module.__file__
            if own and function.__module__ == module.__name__:
                yield function


class MutantSession:
    """A pytest plugin that runs each test once, and then the mutants of each function against the tests that call it.

    `chosen` selects the functions, by their key in `functions_of`.
    """

    def __init__(self, chosen: Callable[[str], bool], jobs: int) -> None:
        self.verdicts: list[Verdict] = []
        self.failed: list[str] = []
        self._chosen, self._jobs = chosen, jobs

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the mutants in place of the tests."""
        functions = {key: one for key, one in functions_of().items() if self._chosen(key)}
        callers = self._callers(session.items, functions)
        waiting = [
            (mutant, function, callers[key])
            for key, function in functions.items()
            for mutant in mutants_of(key.partition(":")[0].removeprefix(f"{PACKAGE}."), function)
        ]
        running: dict[int, tuple[Mutant, int]] = {}
        for mutant, function, items in waiting:
            if len(running) == self._jobs:
                self._wait(running)
            running[_fork(mutant, function, items)] = mutant, len(items)
        while running:
            self._wait(running)
        return True

    def _wait(self, running: dict[int, tuple[Mutant, int]]) -> None:
        process, status = os.wait()
        mutant, tests = running.pop(process)
        self.verdicts.append(Verdict(mutant, status != 0, tests))

    def _callers(self, items: list[pytest.Item], functions: Functions) -> dict[str, list[pytest.Item]]:
        """Return the tests that call each function, the fastest first; those that fail are in `failed`."""
        keys = {one.__code__: key for key, one in functions.items()}
        found: dict[str, list[tuple[float, int]]] = {key: [] for key in functions}
        for place, (item, following) in enumerate(zip_longest(items, items[1:])):
            called: set[str] = set()

            def note(frame: FrameType, event: str, _: Any, called: set[str] = called) -> None:
                if event == "call" and frame.f_code in keys:
                    called.add(keys[frame.f_code])

            before = time.perf_counter()
            sys.setprofile(note)
            try:
                passed = _passes(item, following)
            finally:
                sys.setprofile(None)
            if not passed:
                self.failed.append(item.nodeid)
            for key in called if passed else ():
                found[key].append((time.perf_counter() - before, place))
        return {key: [items[place] for _, place in sorted(places)] for key, places in found.items()}


def _passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=following))


def _fork(mutant: Mutant, function: FunctionType, items: list[pytest.Item]) -> int:
    """Return a process that ends with 0 if all tests pass with the mutant in place."""
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_SECONDS)
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        mutant.plant(function)
        status = 0 if all(starmap(_passes, zip_longest(items, items[1:]))) else 1
    finally:
        os._exit(status)


def verdicts_of(chosen: Callable[[str], bool], jobs: int) -> MutantSession:
    """Return the session of the mutants of the chosen functions."""
    found = MutantSession(chosen, jobs)
    arguments = ["-n0", "-p", "no:cacheprovider", "-p", "no:terminal", "-p", "no:faulthandler"]
    with kept_replies():
        pytest.main([*arguments, *TESTS], plugins=[found])
    return found
