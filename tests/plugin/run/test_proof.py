"""A marked test proves something or fails; one that is meant to prove nothing says so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.releases import RECENT

TESTS = """
    import pytest

    def test_exports_nothing(nnef_export):
        pass

    def test_checks_nothing(nnef_export):
        nnef_export("pass", (1,))

    def test_checks(nnef_export):
        nnef_export("pass", (1,)).check_parity()

    @pytest.mark.nnef_export(check=False)
    def test_is_about_the_export(nnef_export):
        nnef_export("pass", (1,))

    @pytest.mark.nnef_export(check=False)
    def test_returns_what_is_exported():
        return "mismatch", (1,)

    @pytest.mark.nnef_export(check=False)
    def test_returns_what_is_refused():
        return "unsupported", (1,)

    def test_skips(nnef_export):
        pytest.skip("not today")

    def test_fails_by_itself(nnef_export):
        assert nnef_export is None
"""


def test_a_test_that_checks_nothing_fails(suite, mode):
    suite.pytester.makepyfile(TESTS)
    result = suite.run("--t2n-report=site", engines="0.23", mode=mode)
    result.assert_outcomes(passed=3, failed=4, skipped=1)
    cells = {name.removesuffix(f"[tract-{RECENT}]"): cell for name, cell in suite.cells.items()}
    assert {name: (cell["status"], cell["stage"]) for name, cell in cells.items()} == {
        "test_exports_nothing": ("error", "setup"),
        "test_checks_nothing": ("error", "compare"),
        "test_checks": ("pass", "compare"),
        "test_is_about_the_export": ("skip", "write"),
        "test_returns_what_is_exported": ("skip", "write"),
        "test_returns_what_is_refused": ("unsupported", "lower"),
        "test_skips": ("skip", "setup"),
        "test_fails_by_itself": ("error", "setup"),
    }
    assert cells["test_checks_nothing"]["error"]["message"] == "this test exported a model and checked nothing"
    assert cells["test_exports_nothing"]["error"]["message"] == "this test exported nothing and checked nothing"
    assert "check=False" in cells["test_checks_nothing"]["error"]["hint"]
    assert "AssertionError" in cells["test_fails_by_itself"]["error"]["error_class"]


CASES = """
    import pytest

    @pytest.mark.nnef_export
    def test_tract():
        return "pass", (1,)

    @pytest.mark.nnef_export(versions="0.21")
    def test_old():
        return "pass", (1,)

    @pytest.mark.nnef_export(target="khronos")
    def test_khronos():
        return "pass", (1,)

    def test_other():
        pass
"""


@pytest.mark.parametrize(
    ("engines", "passed", "without"),
    [("", 1, 3), ("0.23", 2, 2), ("0.21,0.23", 4, 1)],
)
def test_a_test_without_an_engine_fails_if_that_is_asked(suite, mode, engines, passed, without):
    suite.pytester.makepyfile(CASES)
    suite.run(engines=engines, mode=mode).assert_outcomes(passed=passed, skipped=without)
    result = suite.run("--t2n-require", engines=engines, mode=mode)
    result.assert_outcomes(passed=passed, errors=without)
    result.stdout.fnmatch_lines(["*t2n: no engine selected for khronos; select with --t2n-khronos (--t2n-require)*"])


def test_the_ini_file_can_require_engines(suite):
    suite.pytester.makepyfile(CASES)
    suite.pytester.makeini("[pytest]\nt2n_require = true")
    suite.run(engines="").assert_outcomes(passed=1, errors=3)


BOTH = """
    import pytest

    @pytest.mark.nnef_export(target=["tract", "khronos"])
    @pytest.mark.parametrize("number", [1, 2])
    def test_both(number):
        return "pass", (1,)

    @pytest.mark.nnef_export(target=["tract", "khronos"], versions="0.21")
    def test_old():
        return "pass", (1,)

    @pytest.mark.nnef_export
    def test_tract():
        return "pass", (1,)
"""


def test_cells_without_an_engine_are_named(suite, mode):
    suite.pytester.makepyfile(test_it=BOTH)
    result = suite.run(engines="0.21,0.23", mode=mode)
    assert result.ret == 0
    result.assert_outcomes(passed=7)
    result.stdout.fnmatch_lines(
        [
            "not run, as no engine of this session fits: 3 cells that markers require",
            "  test_it.py::test_both[[]1] on khronos",
            "  test_it.py::test_both[[]2] on khronos",
            "  test_it.py::test_old on khronos",
        ]
    )
    result = suite.run("--t2n-require", engines="0.21,0.23", mode=mode)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["  test_it.py::test_old on khronos", "problem: --t2n-require: markers name targets *"])


def test_only_cells_of_this_session_are_missed(suite):
    suite.pytester.makepyfile(test_it=BOTH)
    assert (
        "no engine of this session fits"
        not in suite.run("-k", "tract and not both and not old", engines="0.21").stdout.str()
    )
    assert suite.run("--t2n-khronos", "--t2n-require", "-k", "both", engines="0.21").ret == 0
    result = suite.run("--t2n-khronos", "--t2n-require", "-k", "old", engines="0.23")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["not run, as no engine of this session fits: *", "  test_it.py::test_old on tract"])


@pytest.mark.parametrize("way", ["no:t2n", "no autoload"])
def test_a_session_without_the_plugin_ends_where_the_project_requires_it(suite, monkeypatch, way):
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile("def test_model():\n    return 'mismatch', (1,)")
    suite.pytester.makeini("[pytest]\nrequired_plugins = pytest-t2n")
    options = ("-p", "no:t2n")
    if way == "no autoload":
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        options = ()
    result = suite.pytester.runpytest_subprocess(*options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: Missing required plugins: pytest-t2n"])


def test_the_hook_of_other_repositories_runs_tests_that_have_no_marker(suite):
    hooks = (Path(__file__).parents[3] / ".pre-commit-hooks.yaml").read_text("utf-8")
    (entry,) = re.findall(r"^  entry: pytest (.+)$", hooks, re.MULTILINE)
    suite.pytester.makepyfile(
        """
        import pytest

        @pytest.mark.nnef_export
        def test_marked():
            return "pass", (1,)

        def test_fixture(nnef_export):
            nnef_export("mismatch", (1,)).assert_parity()

        @pytest.mark.nnef_generate(steps=3)
        def test_generates():
            return None
        """
    )
    suite.run(*entry.split(), engines="0.23").assert_outcomes(passed=1, failed=2)
    suite.run(*entry.split(), engines="").assert_outcomes(errors=3)
