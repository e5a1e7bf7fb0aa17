"""Keys of the ini file, and sessions that call no test."""

from __future__ import annotations

import pytest

from tests.plugin.suites import marked
from tests.releases import RECENT


@pytest.mark.parametrize("file", ["[pytest]\nt2n_reqire = true\n", "[pytest]\nt2n_shard = 1/2\n"])
def test_an_unknown_key_is_an_error(pytester: pytest.Pytester, file: str) -> None:
    pytester.makeini(file)
    pytester.makepyfile(marked())
    result = pytester.runpytest_subprocess()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    key = file.split()[1]
    result.stderr.fnmatch_lines([f"ERROR: *tox.ini: unknown key `{key}`; *"])


def test_the_nearest_key_is_named(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nt2n_reqire = true\n")
    result = pytester.runpytest_subprocess()
    result.stderr.fnmatch_lines(["*did you mean*t2n_require*"])


def test_a_key_of_another_plugin_is_none_of_ours(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nt2n_of_another = 1\n")
    pytester.makeconftest("def pytest_addoption(parser):\n    parser.addini('t2n_of_another', 'help')\n")
    pytester.makepyfile("def test_nothing():\n    pass\n")
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


@pytest.mark.parametrize("option", ["--setup-plan", "--setup-only"])
def test_a_session_that_only_sets_up_checks_nothing(pytester: pytest.Pytester, option: str) -> None:
    pytester.makepyfile(marked())
    result = pytester.runpytest_subprocess(option, f"--t2n-tract={RECENT}", "--t2n-require", "--t2n-report=site")
    assert result.ret == pytest.ExitCode.OK
    assert not (pytester.path / "site").exists()
