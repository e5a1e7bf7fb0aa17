"""What other plugins do to a run of tests costs no result.

They run a test again, several times or in another order, end it, stop the clock, or take the files away. Each stands
here as the few lines that do it.
"""

from __future__ import annotations

import textwrap

import pytest

from tests.plugin.conftest import FAKE_CONFTEST
from tests.releases import RECENT

BOTH = pytest.mark.parametrize("where", ["n0", "n2"])
TESTS = """
    import pytest

    @pytest.mark.nnef_export
    @pytest.mark.parametrize("model", ["pass", "mismatch"])
    def test_model(model):
        return model, (1,)

    def test_other():
        pass
"""
RERUN = """
    import pytest
    from _pytest.runner import runtestprotocol

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(item, nextitem):
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for left in (2, 1, 0):
            reports = runtestprotocol(item, nextitem=nextitem, log=False)
            again = left and any(report.failed for report in reports)
            for report in reports:
                if again and report.failed:
                    report.outcome = "rerun"
                item.ihook.pytest_runtest_logreport(report=report)
            if not again:
                break
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def pytest_report_teststatus(report):
        if report.outcome == "rerun":
            return "rerun", "R", "RERUN"
"""
"""The mechanism of pytest-rerunfailures 16."""
FLAKY = """
    import pytest
    from pathlib import Path

    @pytest.mark.nnef_export
    def test_flaky():
        mark = Path("mark")
        is_second_run = mark.exists()
        mark.touch()
        assert is_second_run
        return "pass", (1,)
"""


def started(suite, plugin: str, *, where: str, engines: str = "0.22,0.23"):
    """Run the suite with a plugin of these lines in a process of its own."""
    (suite.path / "conftest.py").write_text(FAKE_CONFTEST + textwrap.dedent(plugin))
    return suite.run("--t2n-report=site", mode=where, engines=engines, alone=True)


def found(suite) -> list[tuple[str, str]]:
    return sorted((name, status) for name, status in suite.statuses.items())


@BOTH
def test_the_last_of_several_runs_counts(suite, where):
    suite.pytester.makepyfile(test_it=TESTS, test_flaky=FLAKY)
    result = started(suite, RERUN, where=where, engines="0.23")
    result.assert_outcomes(passed=3, failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert found(suite) == [
        (f"test_flaky[tract-{RECENT}]", "pass"),
        (f"test_model[mismatch-tract-{RECENT}]", "mismatch"),
        (f"test_model[pass-tract-{RECENT}]", "pass"),
    ]


REPEAT = """
    import pytest

    @pytest.fixture
    def step_number(request):
        return request.param

    @pytest.hookimpl(trylast=True)
    def pytest_generate_tests(metafunc):
        metafunc.fixturenames.append("step_number")
        metafunc.parametrize("step_number", range(3), indirect=True, ids=["1-3", "2-3", "3-3"])
"""
"""The mechanism of pytest-repeat 0.9."""


@BOTH
@pytest.mark.parametrize("order", ["trylast", "tryfirst"])
def test_each_repetition_is_a_case(suite, where, order):
    suite.pytester.makepyfile(test_it=TESTS)
    result = started(suite, REPEAT.replace("trylast", order), where=where)
    result.assert_outcomes(passed=3 * 2 + 3, failed=3 * 2)
    assert sorted(suite.statuses.values()) == ["mismatch"] * 6 + ["pass"] * 6


SHUFFLE = """
    import random
    import pytest

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(items):
        random.Random(5).shuffle(items)

    def pytest_runtest_setup(item):
        random.seed(5)
"""
"""The mechanism of pytest-randomly 5."""


@BOTH
def test_any_order_of_the_tests_leaves_the_same_results(suite, where):
    suite.pytester.makepyfile(test_it=TESTS)
    results = []
    for plugin in ("", SHUFFLE):
        started(suite, plugin, where=where).assert_outcomes(passed=3, failed=2)
        results.append(found(suite))
    assert results[0] == results[1]


ALARM = """
    import signal
    import pytest

    def end(number, frame):
        pytest.fail("Timeout (>0.5s)")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(item):
        signal.signal(signal.SIGALRM, end)
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
"""
"""The mechanism of pytest-timeout 2 with its method `signal`; a thread that calls `os._exit` is its other one."""
SLOW = """
    import time
    import pytest

    @pytest.mark.nnef_export
    @pytest.mark.parametrize("number", range(3))
    def test_model(number):
        time.sleep(5 * (number == 1))
        return "pass", (1,)
"""


@BOTH
def test_a_test_that_is_ended_is_an_error_of_its_cell(suite, where):
    suite.pytester.makepyfile(test_it=SLOW)
    result = started(suite, ALARM, where=where, engines="0.23")
    result.assert_outcomes(passed=2, failed=1)
    assert [status for _, status in found(suite)] == ["pass", "error", "pass"]
    assert suite.cells[f"test_model[1-tract-{RECENT}]"]["error"]["message"] == "Timeout (>0.5s)"


CLOCK = """
    import subprocess
    import time
    import pytest

    @pytest.fixture
    def stopped(monkeypatch):
        for name in ("time", "monotonic", "perf_counter", "process_time"):
            monkeypatch.setattr(time, name, lambda: 978307200.0)
        monkeypatch.setattr(time, "time_ns", lambda: 978307200 * 10**9)
        monkeypatch.setattr(subprocess, "_time", time.monotonic)
"""
STOPPED = """
    import pytest

    @pytest.mark.nnef_export
    @pytest.mark.parametrize("model", ["pass", "mismatch"])
    def test_model(stopped, model):
        return model, (1,)

    def test_by_hand(stopped, nnef_export):
        nnef_export("mismatch", (1,)).assert_parity()
"""


@BOTH
def test_a_clock_that_stands_still_costs_no_result(suite, where):
    suite.pytester.makepyfile(test_it=STOPPED)
    started(suite, CLOCK, where=where, engines="0.23").assert_outcomes(passed=1, failed=2)
    assert [status for _, status in found(suite)] == ["mismatch", "mismatch", "pass"]


NO_FILES = """
    import builtins
    import io
    import os
    import pytest

    def refuse(path, *arguments, **more):
        raise FileNotFoundError(2, "No such file or directory", str(path))

    @pytest.fixture
    def fs(monkeypatch):
        for module, name in ((builtins, "open"), (io, "open"), (os, "open"), (os, "mkdir"), (os, "stat")):
            monkeypatch.setattr(module, name, refuse)
        yield
        monkeypatch.undo()
"""
"""What pyfakefs does to a test that needs files of the machine."""
WITHOUT = """
    import pytest

    @pytest.mark.nnef_export
    def test_model(fs):
        return "pass", (1,)

    def test_by_hand(nnef_export, fs):
        nnef_export("pass", (1,)).assert_parity()

    @pytest.mark.nnef_export
    @pytest.mark.parametrize("model", ["pass", "mismatch"])
    def test_others(model):
        return model, (1,)
"""


@BOTH
def test_a_test_without_files_is_an_error_of_its_cell(suite, where):
    suite.pytester.makepyfile(test_it=WITHOUT)
    started(suite, NO_FILES, where=where, engines="0.23").assert_outcomes(passed=1, failed=3)
    assert found(suite) == [
        (f"test_by_hand[tract-{RECENT}]", "error"),
        (f"test_model[tract-{RECENT}]", "error"),
        (f"test_others[mismatch-tract-{RECENT}]", "mismatch"),
        (f"test_others[pass-tract-{RECENT}]", "pass"),
    ]


AWAITING = """
import asyncio, functools, pytest

@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    test = pyfuncitem.obj

    @functools.wraps(test)
    def run(**arguments):
        asyncio.run(test(**arguments))

    pyfuncitem.obj = run
"""
"""What pytest-asyncio does with each test in its mode `auto`."""


@pytest.mark.parametrize("plugin", ["", AWAITING], ids=["alone", "awaited"])
def test_an_async_test_is_refused(suite, plugin):
    suite.pytester.makeconftest(plugin)
    suite.pytester.makepyfile("import pytest\n@pytest.mark.nnef_export\nasync def test_it(): return 'pass', (1,)")
    result = suite.run(engines="0.23")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["this test is async: *"])
