"""What goes wrong around the cells: killed workers, lost reports, full disks, interrupted sessions."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import EVERYWHERE
from tests.plugin.suites import marked
from tests.releases import RECENT

SIX = marked("range(2)", "{models}[value]")


def write(suite, *models):
    suite.pytester.makepyfile(SIX.format(models=list(models)))


def test_a_killed_worker_is_one_crash_and_nothing_else_is_lost(suite):
    suite.pytester.makepyfile(marked("range(6)", '"kill@0.22.4" if value == 2 else "pass"'))
    result = suite.run("--t2n-report=site", mode="n2")
    result.assert_outcomes(passed=17, failed=1)
    assert len(suite.cells) == 18
    killed = suite.cells.pop("test_model[2-tract-0.22.4]")
    assert [name for name, status in suite.statuses.items() if status != "pass"] == ["test_model[2-tract-0.22.4]"]
    assert (killed["status"], killed["error"]["error_class"]) == ("crash", "WorkerCrash")
    assert "crashed while running" in killed["error"]["message"]
    kills = [line for line in suite.log if "export kill@0.22.4 0.22.4" in line]
    assert len(kills) == 1, "the test that killed a worker is not run again"


def test_a_worker_that_dies_in_its_first_test_is_named_too(suite):
    write(suite, "kill", "pass")
    result = suite.run("--t2n-report=site", mode="n2", engines="0.23")
    result.assert_outcomes(passed=1, failed=1)
    assert suite.statuses == {f"test_model[0-tract-{RECENT}]": "crash", f"test_model[1-tract-{RECENT}]": "pass"}


def test_lost_reports_are_named_and_fail_the_session(suite, mode):
    write(suite, "pass", "pass")
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(
            "\nimport pytest\n"
            "@pytest.hookimpl(wrapper=True, tryfirst=True)\n"
            "def pytest_runtest_makereport(item, call):\n"
            "    report = yield\n"
            "    if '0-tract-0.22.4' in item.nodeid:\n"
            "        report.user_properties.clear()\n"
            "    return report\n"
        )
    result = suite.run("--t2n-report=site", mode=mode)
    result.assert_outcomes(passed=6)
    if mode == "n2":  # the worker wrote it down, too
        result.stdout.fnmatch_lines(["1 records were read from files of workers: their reports did not arrive"])
        assert set(suite.statuses.values()) == {"pass"}
        return
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["1 planned cells did not run: no report of it arrived", "  *test_model[[]0-tract-0.22.4[]]"]
    )
    assert suite.statuses.pop("test_model[0-tract-0.22.4]") == "not_run"


@pytest.mark.parametrize("where", EVERYWHERE)
def test_user_properties_that_xdist_cannot_carry_cost_nothing(suite, where):
    suite.pytester.makepyfile(
        """
        import pathlib
        import numpy
        import pytest

        @pytest.mark.parametrize("value", [numpy.float64(2), pathlib.Path("x"), {1: [numpy.int8(3)]}])
        def test_other(value, record_property):
            record_property("value", value)

        @pytest.mark.nnef_export
        @pytest.mark.parametrize("number", range(4))
        def test_model(number, record_property):
            record_property("value", numpy.float32(number))
            return "pass", (1,)
        """
    )
    result = suite.run("--t2n-report=site", "--junitxml=junit.xml", mode=where)
    result.assert_outcomes(passed=15)
    assert set(suite.statuses.values()) == {"pass"}
    # The function of a case is called once for all its engines.
    assert (suite.path / "junit.xml").read_text().count("<property ") == 3 + 4


def test_reports_that_xdist_cannot_carry_are_named(suite):
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(
            "\nimport pytest\n"
            "@pytest.hookimpl(wrapper=True, tryfirst=True)\n"
            "def pytest_runtest_makereport(item, call):\n"
            "    report = yield\n"
            "    if '3-tract-0.21.19' in item.nodeid:\n"
            "        report.something = object()\n"
            "    return report\n"
        )
    suite.pytester.makepyfile(marked("range(8)", '"pass"'))
    result = suite.run("--t2n-report=site", mode="n2")
    assert result.ret == pytest.ExitCode.INTERNAL_ERROR
    assert len(suite.cells) == 24
    assert suite.statuses["test_model[3-tract-0.21.19]"] == "not_run"
    result.stdout.fnmatch_lines(["*planned cells did not run: *"])


@pytest.mark.parametrize(("where", "status"), [("n0", 1), ("n2", 2), ("no_xdist", 1)])
def test_stopping_at_the_first_failure_is_the_users_choice(suite, where, status):
    suite.pytester.makepyfile(marked("range(30)", '"mismatch"'))
    result = suite.run("-x", "--t2n-report=site", mode=where, engines="0.23")
    assert result.ret == status
    assert len(suite.cells) == 30
    left = [cell for cell in suite.cells.values() if cell["status"] == "not_run"]
    assert left
    assert all(
        "stopped before it" in cell["error"]["message"] or "interrupted" in cell["error"]["message"] for cell in left
    )


@pytest.mark.parametrize("where", EVERYWHERE)
def test_ctrl_c_keeps_what_was_done(suite, where):
    suite.pytester.makepyfile(
        """
        import os, signal, time
        import pytest

        @pytest.mark.nnef_export
        @pytest.mark.parametrize("number", range(40))
        def test_model(number):
            if number == 20:
                parent = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
                os.kill(parent, signal.SIGINT)
                time.sleep(1)
            return "pass", (1,)
        """
    )
    result = suite.run("--t2n-report=site", mode=where, engines="0.23", alone=True)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert len(suite.cells) == 40
    statuses = list(suite.statuses.values())
    assert statuses.count("pass") >= 10
    assert statuses.count("not_run") >= 10
    assert (suite.path / "site" / "index.html").exists()


INTERRUPTED = """
import pytest_t2n.records.file as file

real, places = file.RecordFile.append, iter(range(1000))

def append(self, line):
    place = next(places)
    if place == {before}:
        raise KeyboardInterrupt
    result = real(self, line)
    if place == {behind}:
        raise KeyboardInterrupt
    return result

file.RecordFile.append = append
"""


@pytest.mark.parametrize(("before", "behind"), [(5, -1), (-1, 5)])
def test_ctrl_c_while_a_record_is_written_loses_and_doubles_none(suite, before, behind):
    conftest = suite.path / "conftest.py"
    conftest.write_text(conftest.read_text() + INTERRUPTED.format(before=before, behind=behind))
    suite.pytester.makepyfile(marked("range(8)", '"pass"'))
    result = suite.run("--t2n-report=site", engines="0.23", alone=True)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert list(suite.statuses.values()) == ["pass"] * 4 + ["not_run"] * 4


@pytest.mark.parametrize("where", EVERYWHERE)
def test_a_full_disk_costs_the_file_and_not_the_results(suite, where):
    write(suite, "pass", "pass")
    (suite.path / "site").mkdir()
    (suite.path / "site" / "matrix.jsonl").symlink_to("/dev/full")
    result = suite.run("--t2n-report=site", mode=where)
    result.assert_outcomes(passed=6)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"tract {RECENT} * 2 *exact 2", "problem: *matrix.jsonl: No space left on device*"])


@pytest.mark.parametrize(
    "arguments",
    [
        ("-p", "no:terminal"),
        ("-p", "no:cacheprovider"),
        ("-o", "strict=true"),
        ("-W", "error"),
        ("--import-mode=importlib",),
        ("-p", "no:logging"),
    ],
)
@pytest.mark.parametrize("where", EVERYWHERE)
def test_with_other_parts_of_pytest_switched(suite, arguments, where):
    write(suite, "pass", "mismatch")
    result = suite.run("--t2n-report=site", *arguments, mode=where, alone=True)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert sorted(suite.statuses.values()) == ["mismatch"] * 3 + ["pass"] * 3
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()


@pytest.mark.parametrize("where", EVERYWHERE)
def test_an_empty_selection(suite, where):
    write(suite, "pass", "pass")
    result = suite.run("-k", "nothing", "--t2n-report=site", mode=where)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert suite.cells == {}
    assert (suite.path / "site" / "index.html").exists()


@pytest.mark.parametrize("where", EVERYWHERE)
def test_lf_runs_the_failed_versions_only(suite, where):
    write(suite, "pass", "mismatch@0.22.4")
    suite.run()
    result = suite.run("--lf", "--t2n-report=site", mode=where)
    result.assert_outcomes(failed=1)
    assert set(suite.statuses) == {"test_model[1-tract-0.22.4]"}


@pytest.mark.parametrize("where", EVERYWHERE)
def test_k_runs_what_it_says(suite, where):
    write(suite, "pass", "mismatch")
    result = suite.run("-k", "model and 1 and 0.22.4", "--t2n-report=site", mode=where)
    result.assert_outcomes(failed=1, **({} if where == "n2" else {"deselected": 5}))
    assert suite.statuses == {"test_model[1-tract-0.22.4]": "mismatch"}


@pytest.mark.parametrize("where", EVERYWHERE)
def test_collect_only_runs_nothing_and_leaves_the_last_report(suite, where):
    write(suite, "pass", "mismatch")
    suite.run("--t2n-report=site")
    before = suite.matrix
    result = suite.run("--collect-only", "-q", "--t2n-report=site", mode=where)
    assert result.ret == 0
    assert len([line for line in result.outlines if "::test_model[" in line]) == 6
    assert suite.matrix == before
    assert len(suite.runs) == 6


@pytest.mark.parametrize("option", ["--collect-only", "--fixtures", "--fixtures-per-test", "--cache-show"])
def test_a_session_without_a_run_leaves_the_last_report_and_bundle(suite, option):
    write(suite, "pass", "mismatch")
    suite.run("--t2n-report=site", "--t2n-bundle=bundle")
    folders = ("site", "bundle")
    before = {path: path.read_bytes() for name in folders for path in (suite.path / name).rglob("*") if path.is_file()}
    assert {path.parent.name for path in before} >= {"site", "bundle", "samples"}
    result = suite.run("--t2n-report=site", "--t2n-bundle=bundle", option)
    assert result.ret == 0
    assert {path: path.read_bytes() for path in before} == before


def test_a_capture_that_fails_is_tried_once_per_case(suite, mode):
    write(suite, "pass", "refused")
    result = suite.run("--t2n-report=site", mode=mode)
    result.assert_outcomes(passed=3, failed=3)
    refused = [cell for cell in suite.cells.values() if cell["status"] != "pass"]
    assert len(refused) == 3
    assert all("these inputs do not fit" in cell["error"]["message"] for cell in refused)
    assert len([line for line in suite.log if line.endswith("capture refused")]) == 1


def test_a_collection_error_elsewhere_leaves_no_cell_unaccounted(suite):
    write(suite, "pass", "pass")
    suite.pytester.makepyfile(test_bad="import nowhere")
    result = suite.run("--t2n-report=site")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert set(suite.statuses.values()) == {"not_run"}


@pytest.mark.parametrize("way", ["no", "load", "loadscope", "loadfile", "loadgroup", "worksteal", "each"])
def test_other_ways_to_distribute_stay_the_users(suite, way):
    write(suite, "pass", "mismatch")
    result = suite.run("--t2n-report=site", f"--dist={way}", mode="n2")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert sorted(suite.statuses.values()) == ["mismatch"] * 3 + ["pass"] * 3


WHERE = """
    import os
    import time
    import pytest

    def wait(name, slow):
        if name == slow:
            time.sleep(1.5)
        return "pass" if name == "gw0" else "mismatch"

    @pytest.mark.nnef_export
    def test_right_first():
        return wait(os.environ["PYTEST_XDIST_WORKER"], "gw1"), (1,)

    @pytest.mark.nnef_export
    def test_wrong_first():
        return wait(os.environ["PYTEST_XDIST_WORKER"], "gw0"), (1,)
"""


def test_of_the_results_of_each_worker_the_worst_counts(suite):
    suite.pytester.makepyfile(test_it=WHERE)
    result = suite.run("--t2n-report=site", "--dist=each", mode="n2", engines="0.23")
    result.assert_outcomes(passed=2, failed=2)
    assert set(suite.statuses.values()) == {"mismatch"}


def test_a_test_whose_own_id_looks_like_an_engine_is_no_cell(suite):
    suite.pytester.makepyfile(
        f"""
        import pytest

        @pytest.mark.parametrize("name", ["a-tract-{RECENT}"])
        def test_it(name):
            pass

        @pytest.mark.nnef_export
        def test_cell():
            return "pass", (1,)
        """
    )
    result = suite.run("--t2n-report=site", mode="n2", engines="0.23")
    result.assert_outcomes(passed=2)
    assert result.ret == 0
    assert set(suite.statuses) == {f"test_cell[tract-{RECENT}]"}


@pytest.mark.parametrize("how", ["shutil.rmtree('site')", "shutil.move('site', 'elsewhere')"])
def test_a_report_that_is_removed_while_the_session_runs_fails_it(suite, mode, how):
    write(suite, "pass", "pass")
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(
            f"\nimport os, shutil\ndef pytest_runtest_teardown(item):\n    if '1-tract-' in item.nodeid: {how}\n"
        )
    result = suite.run("--t2n-report=site", mode=mode, engines="0.23")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["problem: *matrix.jsonl: removed or replaced while the session ran*"])


@pytest.mark.parametrize("where", ["plain", "n2"])
def test_a_full_disk_costs_the_bundle_and_no_result(suite, where):
    suite.pytester.makepyfile(marked(model='"pass"'))
    conftest = suite.path / "conftest.py"
    lines = (
        "import errno",
        "import pytest_t2n.run.bundles",
        "def full(*given): raise OSError(errno.ENOSPC, 'No space left on device')",
        "pytest_t2n.run.bundles.add_to_bundle = full",
    )
    conftest.write_text("\n".join([conftest.read_text(), *lines]))
    result = suite.run("--t2n-report=site", "--t2n-bundle=bundle", engines="0.23", mode=where, alone=True)
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert list(suite.statuses.values()) == ["pass"]
    result.stdout.fnmatch_lines(["problem: --t2n-bundle: *test_model* is not in the bundle: No space left on device"])
