"""What a new user meets in a session: skips with their true reason, causes first, and failures that run again."""

from __future__ import annotations

import pytest

from pytest_t2n.cli import main
from tests.plugin.judging.bundles import OneMore, judge_here
from tests.plugin.suites import marked
from tests.releases import RECENT

MODEL = marked(model='"{what}"')


def test_a_method_of_a_testcase_says_why_it_fails(suite):
    suite.pytester.makepyfile(
        """
        import unittest
        import pytest

        class TestNet(unittest.TestCase):
            @pytest.mark.nnef_export
            def test_net(self):
                pass
        """
    )
    result = suite.run(engines="0.23")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*a method of a unittest.TestCase takes no parameters*assert_nnef_parity*"])
    assert "no engine selected" not in result.stdout.str()


@pytest.mark.parametrize("mode", ["plain", "n2"])
def test_the_short_summary_begins_with_the_cause(suite, mode):
    suite.pytester.makepyfile(test_it=MODEL.format(what="mismatch"))
    result = suite.run(engines="0.23", mode=mode)
    result.stdout.fnmatch_lines([f"FAILED test_it.py::test_model?tract-{RECENT}? - 1 of 1 outputs differ from*"])


def test_a_failure_before_any_engine_is_shown_once_with_its_engines(suite, mode, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    suite.pytester.makepyfile(test_it=marked('["unsupported", "mismatch"]'))
    result = suite.run("-v", engines="0.21,0.22,0.23", mode=mode)
    result.assert_outcomes(failed=6)
    lines = result.stdout.lines
    failures = lines[lines.index(next(line for line in lines if "= FAILURES =" in line)) :]
    text = "\n".join(failures)
    assert text.count("unsupported at stage `lower`") == 1
    assert text.count("mismatch at stage `compare`") == 3
    assert text.count("FAILED test_it.py::test_model[unsupported-") == text.count(" - in 3 engines: ") == 1
    engines = next(line for line in failures if "before any engine, so the same in" in line)
    assert all(f"tract {version}" in engines for version in ("0.21.19", "0.22.4", RECENT))


def test_a_level_that_is_none_shows_no_frame_of_ours(suite):
    suite.pytester.makepyfile(
        """
        import pytest

        @pytest.mark.nnef_export
        def test_model(nnef_export):
            nnef_export("pass", (1,)).assert_parity("closer")
        """
    )
    result = suite.run(engines="0.23")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*did you mean `close`*"])
    result.stdout.no_fnmatch_line("*pytest_t2n/*.py:*")


def test_words_that_no_cell_can_have(suite, capsys):
    suite.pytester.makepyfile(test_it=MODEL.format(what="pass"))
    suite.run("--t2n-report=site", engines="0.23")
    capsys.readouterr()
    for option, choices in (("status", "pass, weak"), ("stage", "capture"), ("level", "exact, close")):
        assert main(["matrix", "query", str(suite.path / "site"), f"--{option}=nonsense"]) == 1
        err = capsys.readouterr().err
        assert f"error: --{option}=nonsense: there are" in err
        assert choices in err


def test_the_folder_of_failures_is_a_bundle(suite, monkeypatch, capsys):

    suite.pytester.makepyfile(test_a=MODEL.format(what="mismatch"), test_b=MODEL.format(what="crash"))
    suite.run("--t2n-bundle-failures=failures", engines="0.21,0.23").assert_outcomes(failed=4)
    assert len(list((suite.path / "failures").iterdir())) == 4

    judge_here(monkeypatch, OneMore())
    monkeypatch.chdir(suite.path)
    capsys.readouterr()
    assert main(["matrix", "run", "--bundle", "failures", "--tract", RECENT]) == 1
    out = capsys.readouterr().out
    assert "2 of 2 cells are not as expected" in out
    assert f"mismatch at stage `compare` in tract {RECENT}: 1 of 1 outputs differ from PyTorch" in out
    assert "max abs" in out
