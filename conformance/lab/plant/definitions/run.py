"""The tests of the definitions against their mutants: in one process, a fork for each mutant.

Tests that run engines are slow: they run only for the mutants that all other tests let pass.
"""

from __future__ import annotations

import hashlib
import os
import pkgutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import starmap, zip_longest
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any, Final
from unittest.mock import patch

import pytest
from _pytest.runner import runtestprotocol

from conformance.lab.plant.definitions.equivalents import EQUIVALENT
from conformance.lab.plant.definitions.mutate import Mutant, mutants_of
from conformance.lab.plant.trial import CAUGHT, Trial
from t2n_core.engine.protocol import Array, EngineReply
from t2n_core.engine.tract.engine import TractEngine

PACKAGE: Final = "t2n_core.dialect.meaning"
MODULES: Final = ("t2n_core.dialect.arrays", "t2n_core.dialect.scan")
"""Modules outside of the package that define an operator: `tract_core_cast` and `tract_core_scan`."""
TESTS: Final = (
    "tests/unit/dialect",
    "tests/contract/dialect/test_standard.py",
    "tests/contract/dialect/test_against_pytorch.py",
)
"""Tests that call the definitions, and run no engine."""
ENGINE_TESTS: Final = ("tests/contract/dialect/test_operators.py",)
"""Tests that compare the definitions with engines."""
_SECONDS: Final = 60
"""Time after which a mutant that does not end counts as caught."""

Functions = dict[str, FunctionType]
Planted = tuple[str, Mutant]
"""The key of a function, and one of its mutants."""


EQUAL: Final = "equivalent"
"""What is expected of a mutant that computes the same."""


@dataclass(frozen=True, slots=True)
class Verdict(Trial):
    """What became of a mutant."""

    line: int
    tests: int
    """Number of tests that call the function."""

    @classmethod
    def of(cls, mutant: Mutant, caught: bool, tests: int) -> Verdict:
        """Return the verdict on a mutant, which is expected to be caught unless it is equivalent."""
        expected = EQUAL if mutant.name in EQUIVALENT and not caught else CAUGHT
        return cls(mutant.kind, mutant.name, expected, CAUGHT if caught else "", mutant.line, tests)


def functions_of() -> Functions:
    """Return the functions and methods that define operators by module and qualified name."""
    root = import_module(PACKAGE)
    names = (*(module_info.name for module_info in pkgutil.walk_packages(root.__path__, f"{PACKAGE}.")), *MODULES)
    modules = [import_module(name) for name in names]
    return {f"{module.__name__}:{function.__qualname__}": function for module in modules for function in _own(module)}


def _own(module: ModuleType) -> Iterator[FunctionType]:
    for value in vars(module).values():
        members = vars(value).values() if isinstance(value, type) else [value]
        for member in members:
            function = member.fget if isinstance(member, property) else member
            is_local = isinstance(function, FunctionType) and function.__code__.co_filename == module.__file__
            if is_local and function.__module__ == module.__name__:
                yield function


class MutantSession:
    """A pytest plugin that runs each test once, and then the mutants of each function against the tests that call it.

    First the tests without an engine; then those with one, for the mutants that survived and are not equivalent.

    `chosen` selects the functions, by their key in `functions_of`.
    """

    def __init__(self, chosen: Callable[[str], bool], jobs: int) -> None:
        self.verdicts: dict[Mutant, Verdict] = {}
        self.failed: list[str] = []
        self._chosen, self._jobs = chosen, jobs

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the mutants instead of the tests."""
        functions = {key: function for key, function in functions_of().items() if self._chosen(key)}
        left = [
            (key, mutant)
            for key, function in functions.items()
            for mutant in mutants_of(key.partition(":")[0].removeprefix(f"{PACKAGE}."), function)
        ]
        for tests in (TESTS, ENGINE_TESTS):
            if left:
                functions = {key: functions[key] for key, _ in left}
                callers = self._callers([item for item in session.items if item.nodeid.startswith(tests)], functions)
                self._judge(left, functions, callers)
                left = [(key, mutant) for key, mutant in left if self._survived(mutant)]
        return True

    def _survived(self, mutant: Mutant) -> bool:
        """Return whether no test caught a mutant that is not equivalent."""
        return not self.verdicts[mutant].found and mutant.name not in EQUIVALENT

    def _judge(
        self, planted: Sequence[Planted], functions: Functions, callers: Mapping[str, list[pytest.Item]]
    ) -> None:
        """Run the tests that call each function with its mutants in place."""
        running: dict[int, Planted] = {}
        for key, mutant in planted:
            if len(running) == self._jobs:
                self._wait(running, callers)
            running[_fork(mutant, functions[key], callers[key])] = key, mutant
        while running:
            self._wait(running, callers)

    def _wait(self, running: dict[int, Planted], callers: Mapping[str, list[pytest.Item]]) -> None:
        process, status = os.wait()
        key, mutant = running.pop(process)
        before = self.verdicts[mutant].tests if mutant in self.verdicts else 0
        self.verdicts[mutant] = Verdict.of(mutant, status != 0, before + len(callers[key]))

    def _callers(self, items: list[pytest.Item], functions: Functions) -> dict[str, list[pytest.Item]]:
        """Return the tests that call each function, the fastest first; failing tests go into `failed`."""
        keys = {function.__code__: key for key, function in functions.items()}
        calls: dict[str, list[tuple[float, int]]] = {key: [] for key in functions}
        for index, (item, following) in enumerate(zip_longest(items, items[1:])):
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
                calls[key].append((time.perf_counter() - before, index))
        return {key: [items[index] for _, index in sorted(places)] for key, places in calls.items()}


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
    session = MutantSession(chosen, jobs)
    arguments = ["-n0", "-p", "no:cacheprovider", "-p", "no:terminal", "-p", "no:faulthandler"]
    with kept_replies():
        pytest.main([*arguments, *TESTS, *ENGINE_TESTS], plugins=[session])
    return session


@contextmanager
def kept_replies() -> Iterator[None]:
    """Give a context in which an engine answers what it answered before; forked processes answer from it too."""
    run, replies = TractEngine.run, dict[str, EngineReply]()

    def answer(engine: TractEngine, archive: Path, batches: Sequence[Sequence[Array]], **options: Any) -> EngineReply:
        key = _key(engine, archive, batches)
        if options.keys() - {"timeout"} or not archive.is_dir():
            return run(engine, archive, batches, **options)
        if key not in replies:
            replies[key] = run(engine, archive, batches, **options)
        return replies[key]

    with patch.object(TractEngine, "run", answer):
        yield


def _key(engine: TractEngine, archive: Path, batches: Sequence[Sequence[Array]]) -> str:
    digest = hashlib.sha256(engine.version.encode())
    for file in sorted(archive.rglob("*")):
        digest.update(f"{file.name}\n".encode() + file.read_bytes())
    for array in (array for batch in batches for array in batch):
        digest.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return digest.hexdigest()
