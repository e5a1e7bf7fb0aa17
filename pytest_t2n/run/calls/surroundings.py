"""Seeds for calls of test functions, skips inside models, and fixtures that a model depends on."""

from __future__ import annotations

import dis
import inspect
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pytest_t2n.collect.names import ENGINE_PARAM, FIXTURES

_SAME_FOR_ALL = frozenset({"param", "addfinalizer", "config"})
"""Attributes of `request` that do not depend on the engine; `param` is the fixture's own."""
_HARMLESS_MODULES = frozenset({"_pytest", "pytest_t2n", "pytest_benchmark", "xdist"})


@contextmanager
def no_skips() -> Iterator[None]:
    """Fail the test, instead of skipping it, if the code of a model calls `pytest.skip`."""
    __tracebackhide__ = True
    try:
        yield
    except pytest.skip.Exception as skipped:
        pytest.fail(f"the model calls pytest.skip while it is exported or checked: {skipped}", pytrace=False)


def reads_engine(item: pytest.Item) -> bool:
    """Return whether a test or one of its fixtures may know its engine, so that each engine may have another model.

    It may if it takes `t2n_engine`, or takes `request` for more than what is the same for all engines.
    """
    fixture_info = getattr(item, "_fixtureinfo", None)
    if fixture_info is None:
        return False
    fixtures = (
        fixture
        for name, of_name in fixture_info.name2fixturedefs.items()
        if name not in FIXTURES
        for fixture in of_name
    )
    functions = [
        (getattr(item, "obj", None), fixture_info.argnames),
        *((fixture.func, fixture.argnames) for fixture in fixtures),
    ]
    return any(
        ENGINE_PARAM in names or ("request" in names and _may_read_engine(function)) for function, names in functions
    )


def _may_read_engine(function: Any) -> bool:
    """Return whether a function that takes `request` may read the engine from it.

    The fixtures of pytest and of this plugin do not. Another one does not if it only uses attributes that are the same
    for all engines: then its code loads `request` nowhere but in front of them.
    """
    function = inspect.unwrap(getattr(function, "__func__", function))
    code = getattr(function, "__code__", None)
    if getattr(function, "__module__", "").partition(".")[0] in _HARMLESS_MODULES:
        return False
    if code is None or "request" in (*code.co_cellvars, *code.co_freevars):
        return True
    steps = list(dis.get_instructions(code))
    following = {number: steps[number + 1].argval for number in range(len(steps) - 1)}
    loads = [number for number, step in enumerate(steps) if _loads(step, "request")]
    return any(following.get(number) not in _SAME_FOR_ALL for number in loads)


def _loads(step: dis.Instruction, name: str) -> bool:
    return step.argval == name or (isinstance(step.argval, tuple) and name in step.argval)


@contextmanager
def seed_torch(case: str) -> Iterator[None]:
    """Seed torch by the case, for equal random weights in every session and worker, and restore its state."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    seed, generator = zlib.crc32(case.encode()), torch.random.default_generator
    state = generator.get_state()
    if torch.accelerator.is_available():
        torch.manual_seed(seed)
    else:
        # `torch.manual_seed` would store the text of a stack for each device type that may be initialised later.
        generator.manual_seed(seed)
    try:
        yield
    finally:
        generator.set_state(state)
