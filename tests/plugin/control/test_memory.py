"""What the process that keeps the book holds of each cell: bytes that are counted, never time."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import FAKE_CONFTEST

SUITE = """
    import pytest

    @pytest.mark.nnef_export(target="tract")
    @pytest.mark.parametrize("number", range({cases}))
    def test_model(number):
        return "pass", (1,)
"""
COUNTING = """

import gc
import tracemalloc

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session):
    if not hasattr(session.config, "workerinput"):
        tracemalloc.start()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session):
    if hasattr(session.config, "workerinput"):
        return
    gc.collect()
    ours = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "*/pytest_t2n/*")])
    Path(__file__).with_name("held.txt").write_text(str(sum(one.size for one in ours.traces)))
    tracemalloc.stop()
"""
FEW, MANY = 10, 70


@pytest.mark.parametrize("arguments", [["--t2n-report=site"], []], ids=["report", "no report"])
@pytest.mark.parametrize(("mode", "bound"), [("n2", 400), ("plain", 700)])
def test_the_controller_keeps_no_records(suite, mode, bound, arguments):
    suite.pytester.makeconftest(FAKE_CONFTEST + COUNTING)
    held = {}
    for cases in (FEW, MANY):
        suite.pytester.makepyfile(SUITE.format(cases=cases))
        suite.run(*arguments, "-q", mode=mode, alone=True).assert_outcomes(passed=3 * cases)
        held[cases] = int((suite.path / "held.txt").read_text())
    # The records of this suite take 2500 bytes each. In one process each of pytest's items has the cell that it is.
    assert (held[MANY] - held[FEW]) / (3 * (MANY - FEW)) < bound, held
