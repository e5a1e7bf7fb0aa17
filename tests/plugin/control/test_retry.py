"""Tests that a plugin runs again while their report is made, as pytest-retry does: the matrix says what pytest says."""

from __future__ import annotations

import os

import pytest

from tests.releases import RECENT

RETRY = """
    import pytest


    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(item, call):
        report = (yield).get_result()
        if call.when != "call" or not report.failed:
            return
        item.ihook.pytest_runtest_teardown(item=item, nextitem=None)
        report.outcome = "retried"
        item.ihook.pytest_runtest_logreport(report=report)
        item._initrequest()
        pytest.CallInfo.from_call(lambda: item.ihook.pytest_runtest_setup(item=item), "setup")
        again = pytest.CallInfo.from_call(lambda: item.ihook.pytest_runtest_call(item=item), "call")
        second = pytest.TestReport.from_item_and_call(item, again)
        report.outcome, report.longrepr = second.outcome, second.longrepr
"""
"""The mechanism of pytest-retry 1.7.0."""
TESTS = """
    import pytest
    from pathlib import Path

    @pytest.mark.nnef_export
    def test_raises_once():
        mark = Path(__file__).with_name("mark")
        is_second_run = mark.exists()
        mark.touch()
        assert is_second_run, "flaky"
        return "pass", (1,)

    @pytest.mark.nnef_export
    def test_mismatch():
        return "mismatch", (1,)
"""


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("place", ["before", "behind"])
def test_the_last_attempt_counts(suite, workers, place, monkeypatch):
    """Pytest loads plugins named by `-p` before this one, and those of PYTEST_PLUGINS behind it."""
    suite.pytester.makepyfile(test_it=TESTS, again=RETRY)
    monkeypatch.setenv("PYTHONPATH", str(suite.path), prepend=os.pathsep)
    if place == "behind":
        monkeypatch.setenv("PYTEST_PLUGINS", "again")
    options = ["-p", "again"] if place == "before" else []
    select = ["--t2n-tract=0.23", "--t2n-report=site", f"-n{workers}"]
    result = suite.pytester.runpytest_subprocess(*select, *options, timeout=120)
    result.assert_outcomes(passed=1, failed=1)
    statuses = {nodeid.partition("[")[0]: status for nodeid, status in suite.statuses.items()}
    assert statuses == {"test_raises_once": "pass", "test_mismatch": "mismatch"}


OFTEN = """
    from pathlib import Path

    def test_often(nnef_export):
        with Path("count").open("a+") as file:
            file.write("x")
            file.seek(0)
            number = len(file.read())
        nnef_export({models}[number - 1], (1,)).assert_parity()
"""


@pytest.mark.parametrize(
    ("models", "status"),
    [
        (["pass", "mismatch"], "mismatch"),
        (["mismatch", "pass"], "mismatch"),
        (["weak", "mismatch"], "mismatch"),
        (["pass", "weak"], "weak"),
    ],
)
@pytest.mark.parametrize("mode", ["plain", "n0"])  # the scheduler of xdist runs a node id once
def test_the_worst_run_of_a_test_that_is_named_twice_counts(suite, models, status, mode):
    suite.pytester.makepyfile(test_it=OFTEN.format(models=models))
    result = suite.run("--keep-duplicates", "test_it.py", "test_it.py", "--t2n-report=site", engines="0.23", mode=mode)
    failed = models.count("mismatch")
    result.assert_outcomes(passed=2 - failed, failed=failed)
    assert suite.statuses == {f"test_often[tract-{RECENT}]": status}
