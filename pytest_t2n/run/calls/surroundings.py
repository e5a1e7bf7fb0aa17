"""Seeds for calls of test functions, skips inside models, and fixtures that a model depends on."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pytest_t2n.collect.names import ENGINE_PARAM, FIXTURE


@contextmanager
def no_skips() -> Iterator[None]:
    """Fail the test, instead of skipping it, if the code of a model calls `pytest.skip`."""
    __tracebackhide__ = True
    try:
        yield
    except pytest.skip.Exception as skipped:
        pytest.fail(f"the model calls pytest.skip while it is exported or checked: {skipped}", pytrace=False)


def reads_engine(item: pytest.Item) -> bool:
    """Return whether a test or one of its fixtures takes `t2n_engine`, so that each engine may have another model."""
    found = getattr(item, "_fixtureinfo", None)
    if found is None:
        return False
    fixtures = (one for name, of_name in found.name2fixturedefs.items() if name != FIXTURE for one in of_name)
    return ENGINE_PARAM in found.argnames or any(ENGINE_PARAM in one.argnames for one in fixtures)


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
