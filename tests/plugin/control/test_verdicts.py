"""A verdict is known: a failed check fails its test unless the test says that it expects the failure.

However the test, a thread, or a hook loses it; and the results agree with what pytest counts.
"""

from __future__ import annotations

import textwrap

import pytest

from tests.plugin.conftest import FAKE_CONFTEST
from tests.releases import RECENT

LOST = """
    import asyncio
    import contextlib
    import gc
    import threading
    from concurrent.futures import ThreadPoolExecutor

    import pytest

    def test_printed(nnef_export):
        print(nnef_export("mismatch", (1,)).check_parity())

    def test_property(nnef_export, record_property):
        record_property("outcome", f"{nnef_export('mismatch', (1,)).check_parity()}")

    def test_noted(nnef_export):
        result = nnef_export("mismatch", (1,))
        result.note(result.check_parity(note=False))

    def test_not_noted(nnef_export):
        nnef_export("pass", (1,)).assert_parity()
        nnef_export("mismatch", (1,)).check_parity(note=False)

    def test_thread(nnef_export):
        thread = threading.Thread(target=nnef_export("mismatch", (1,)).assert_parity)
        thread.start()
        thread.join()

    def test_pool(nnef_export):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(nnef_export("mismatch", (1,)).assert_parity)

    def test_export_in_a_pool(nnef_export):
        nnef_export("pass", (1,)).assert_parity()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(nnef_export, "unsupported", (1,))

    def test_task(nnef_export):
        async def check():
            nnef_export("mismatch", (1,)).assert_parity()

        async def run():
            task = asyncio.create_task(check())
            await asyncio.sleep(0)

        asyncio.run(run())

    def test_suppressed(nnef_export):
        with contextlib.suppress(Exception):
            nnef_export("mismatch", (1,)).assert_parity()

    def test_caught(nnef_export):
        try:
            nnef_export("mismatch", (1,)).assert_parity()
        except Exception:
            pass

    def test_deleted(nnef_export):
        result = nnef_export("mismatch", (1,))

        class Checks:
            def __del__(self):
                result.assert_parity()

        Checks()

    def test_wrong_argument_in_a_pool(nnef_export):
        nnef_export("pass", (1,)).assert_parity()
        result = nnef_export("pass", (1,))
        with ThreadPoolExecutor(1) as pool:
            pool.submit(result.assert_parity, tolerence="close")
"""
KNOWN = """
    import pytest
    from t2n_core.errors import ParityError

    def test_raises(nnef_export):
        with pytest.raises(ParityError):
            nnef_export("mismatch", (1,)).assert_parity()

    def test_raises_called(nnef_export):
        pytest.raises(ParityError, nnef_export("mismatch", (1,)).assert_parity)

    def test_raises_what_it_caused(nnef_export):
        with pytest.raises(RuntimeError):
            try:
                nnef_export("mismatch", (1,)).assert_parity()
            except ParityError as exc:
                raise RuntimeError("wrapped") from exc

    @pytest.fixture
    def checked(nnef_export):
        with pytest.raises(ParityError):
            nnef_export("mismatch", (1,)).assert_parity()

    def test_raises_in_a_fixture(checked):
        pass

    def test_argument(nnef_export):
        nnef_export("mismatch", (1,)).check_parity(expected="known")
"""


def test_a_failed_check_that_is_lost_fails_its_test(suite, mode):
    suite.pytester.makepyfile(LOST)
    options = ("-p", "no:threadexception", "-p", "no:unraisableexception")
    result = suite.run("--t2n-report=site", *options, engines="0.23", mode=mode)
    count = LOST.count("def test_")
    result.assert_outcomes(failed=count)
    cells = suite.cells.values()
    assert len(cells) == count
    assert [cell["nodeid"] for cell in cells if cell["status"] in ("pass", "skip") or cell.get("expected")] == []
    result.stdout.fnmatch_lines(["a check of this test failed, and the test does not: mismatch *", "*pytest.raises*"])


def test_a_test_says_that_it_expects_a_failure(suite):
    suite.pytester.makepyfile(KNOWN)
    result = suite.run("--t2n-report=site", engines="0.23")
    result.assert_outcomes(passed=KNOWN.count("def test_"))
    expected = {cell["expected"].removeprefix("the test expects it: ") for cell in suite.cells.values()}
    assert expected == {"pytest.raises", "known"}


LATE = """
    import threading
    import time

    import pytest

    held = []

    @pytest.fixture
    def at_the_end(nnef_export):
        yield
        nnef_export("mismatch", (1,)).check_parity()

    def test_in_teardown(at_the_end, nnef_export):
        nnef_export("pass", (1,)).assert_parity()

    @pytest.fixture
    def begun_at_the_end(nnef_export):
        yield
        result = nnef_export("pass", (1,))
        result._run.check = lambda *given: time.sleep(1)
        threading.Thread(target=result.assert_parity, daemon=True).start()
        time.sleep(0.2)

    def test_begun_in_teardown(begun_at_the_end, nnef_export):
        nnef_export("pass", (1,)).assert_parity()

    def test_first(nnef_export):
        held.append(nnef_export("pass", (1,)))
        held[0].assert_parity()

    def test_later():
        with pytest.raises(RuntimeError):
            held[0].check_parity()

    def test_begun(nnef_export, monkeypatch):
        nnef_export("pass", (1,)).assert_parity()
        result = nnef_export("pass", (1,))
        monkeypatch.setattr(result._run, "check", lambda *given: time.sleep(1))
        threading.Thread(target=result.assert_parity, daemon=True).start()
        time.sleep(0.2)
"""


@pytest.mark.parametrize("where", ["plain", "n2"])
def test_checks_that_come_late_fail_the_session(suite, where):
    suite.pytester.makepyfile(LATE)
    result = suite.run("--t2n-report=site", "--dist=loadfile", engines="0.23", mode=where)
    result.assert_outcomes(passed=4, failed=1, errors=2)
    result.stdout.fnmatch_lines(["problem: *test_first*: a check was begun after its test had ended"])
    assert suite.cells[f"test_begun[tract-{RECENT}]"]["error"]["error_class"] == "UnfinishedCheckError"
    assert suite.statuses[f"test_in_teardown[tract-{RECENT}]"] == "mismatch"
    assert suite.statuses[f"test_begun_in_teardown[tract-{RECENT}]"] == "error"


HOOKS = {
    "makereport": """
        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_makereport(item, call):
            report = yield
            if report.when == "call" and report.failed:
                report.outcome, report.longrepr = "passed", None
            return report
    """,
    "call": """
        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_call(item):
            try:
                return (yield)
            except BaseException:
                return None
    """,
    "pyfunc": """
        @pytest.hookimpl(wrapper=True, tryfirst=True)
        def pytest_pyfunc_call(pyfuncitem):
            try:
                return (yield)
            except BaseException:
                return True
    """,
    "logreport": """
        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_logreport(report):
            if report.failed:
                report.outcome, report.longrepr = "passed", None
    """,
    "skipped": """
        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_makereport(item, call):
            report = yield
            if report.failed:
                report.outcome, report.longrepr = "skipped", ("test_it.py", 1, "quarantine")
            return report
    """,
}
HOOKED = """
    import pytest

    @pytest.mark.nnef_export
    @pytest.mark.parametrize("model", ["pass", "mismatch"])
    def test_model(model):
        return model, (1,)

    def test_by_hand(nnef_export):
        nnef_export("mismatch", (1,)).assert_parity()

    @pytest.mark.nnef_export
    def test_broken():
        raise NameError("a name")
"""


@pytest.mark.parametrize("where", ["n0", "n2"])
@pytest.mark.parametrize("hook", list(HOOKS))
def test_a_hook_that_loses_failures_makes_no_session_green(suite, hook, where):
    suite.pytester.makepyfile(test_it=HOOKED)
    (suite.path / "conftest.py").write_text(FAKE_CONFTEST + "import pytest\n" + textwrap.dedent(HOOKS[hook]))
    result = suite.run("--t2n-report=site", engines="0.23", mode=where, alone=True)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert [status for name, status in suite.statuses.items() if "test_model[mismatch" in name] == ["mismatch"]
    assert [cell["nodeid"] for cell in suite.cells.values() if cell.get("expected")] == []


SUBTESTS = """
    import pytest

    def test_first(nnef_export, subtests):
        with subtests.test(n=1):
            nnef_export("mismatch", (1,)).assert_parity()
        with subtests.test(n=2):
            nnef_export("pass", (1,)).assert_parity()

    def test_last(nnef_export, subtests):
        for model in ("pass", "mismatch"):
            with subtests.test(model=model):
                nnef_export(model, (1,)).assert_parity()

    def test_unsupported(nnef_export, subtests):
        for model in ("pass", "unsupported"):
            with subtests.test(model=model):
                nnef_export(model, (1,)).assert_parity()

    def test_other(nnef_export, subtests):
        nnef_export("pass", (1,)).assert_parity()
        with subtests.test(n=1):
            assert 1 == 2

    def test_good(nnef_export, subtests):
        for number in range(2):
            with subtests.test(n=number):
                nnef_export("pass", (1,)).assert_parity()
"""


@pytest.mark.skipif(not hasattr(pytest, "Subtests"), reason="pytest 9 has subtests")
@pytest.mark.parametrize("where", ["n0", "n2"])
def test_a_failed_subtest_is_a_failed_cell(suite, where):
    suite.pytester.makepyfile(SUBTESTS)
    result = suite.run("--t2n-report=site", engines="0.23", mode=where)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert {name.partition("[")[0].removeprefix("test_"): status for name, status in suite.statuses.items()} == {
        "first": "mismatch",
        "last": "mismatch",
        "unsupported": "unsupported",
        "other": "error",
        "good": "pass",
    }
    assert [cell["nodeid"] for cell in suite.cells.values() if cell.get("expected")] == []
