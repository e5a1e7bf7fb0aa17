"""A pass that proves little is shown as weak, fails where the user is strict, and may have a written reason.

One with NaN or infinities says their share.
"""

from __future__ import annotations

import pytest

from pytest_t2n.records.file import read_records, write_records
from pytest_t2n.records.schema import EndLine
from tests.releases import RECENT

CASES = """
    import pytest

    @pytest.mark.nnef_export
    @pytest.mark.parametrize("model", ["pass", "weak"])
    def test_model(model):
        return model, (1,)

    @pytest.mark.nnef_export
    def test_both(nnef_export):
        for model in ("weak", "pass"):
            nnef_export(model, (1,)).assert_parity()
"""
NOT_FINITE = CASES.partition("    @pytest.mark.nnef_export\n    def test_both")[0].replace('"weak"', '"nan"')
REASON = """
    [[expect]]
    case = ["test_it.py::test_model[weak]", "test_it.py::test_both"]
    engine = "tract"
    stage = "compare"
    status = "weak"
    reason = "the model has one input of no choice"
"""


def statuses(suite):
    return {
        name.removesuffix(f"-tract-{RECENT}]").removesuffix(f"[tract-{RECENT}]"): cell
        for name, cell in suite.cells.items()
    }


def test_a_weak_pass_is_shown(suite, mode):
    suite.pytester.makepyfile(test_it=CASES)
    result = suite.run("--t2n-report=site", engines="0.23", mode=mode)
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        [
            "engine*pass*weak*",
            f"tract {RECENT}*1*2*",
            "2 weak: *--t2n-strict*",
            "*test_model?weak-*: 1 of 1 outputs prove *",
        ]
    )
    cells = statuses(suite)
    assert {name: cell["status"] for name, cell in cells.items()} == {
        "test_model[pass": "pass",
        "test_model[weak": "weak",
        "test_both": "weak",
    }
    assert cells["test_model[weak"]["outputs"][0]["weak"] == "was compared for one set of inputs only"
    assert cells["test_model[pass"]["outputs"][0]["moves"] > 1
    summary = (suite.pytester.path / "site" / "summary.md").read_text()
    assert "prove little" in summary


def test_weak_passes_are_counted_alike_in_the_terminal_and_on_the_page(suite):
    suite.pytester.makepyfile(test_it=CASES.replace('["pass", "weak"]', '["pass", "weak", "mismatch"]'))
    for option, word in ((), "passed"), (("--t2n-strict",), "failed"):
        result = suite.run("--t2n-report=site", *option, engines="0.23")
        result.stdout.fnmatch_lines(
            [f"3 cells unexpected: 1 failed, 2 weak, which pytest counts as {word}", "2 weak: *"]
        )
        page = (suite.path / "site" / "index.html").read_text()
        assert "<b>3</b> unexpected <span>1 failed, 2 weak</span>" in page


def test_a_strict_session_fails_it(suite, mode):
    suite.pytester.makepyfile(test_it=CASES)
    result = suite.run("--t2n-strict", engines="0.23", mode=mode)
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        ["--t2n-strict: 1 of 1 outputs prove little: y was compared for one set of inputs only"]
    )


def test_a_session_that_goes_on_fails_for_it_where_it_is_strict(suite):
    suite.pytester.makepyfile(test_it=CASES)
    suite.run("--t2n-report=site", engines="0.23")
    path = suite.path / "site" / "matrix.jsonl"
    killed = [line for line in read_records(path) if not isinstance(line, EndLine)][:-1]
    for option, status in ((), pytest.ExitCode.OK), (("--t2n-strict",), pytest.ExitCode.TESTS_FAILED):
        write_records(path, killed)
        result = suite.run("--t2n-report=site", "--t2n-resume", *option, "-k", "test_both or pass", engines="0.23")
        assert result.ret == status
    result.stdout.fnmatch_lines(["problem: kept failure: *test_model?weak-*: weak at compare"])


def test_a_written_reason_is_enough(suite, mode):
    suite.pytester.makepyfile(test_it=CASES)
    suite.pytester.makefile(".toml", known=REASON)
    result = suite.run("--t2n-strict", "--t2n-expect=known.toml", "--t2n-report=site", engines="0.23", mode=mode)
    result.assert_outcomes(passed=3)
    result.stdout.no_fnmatch_line("*weak:*")
    assert "one input of no choice" in statuses(suite)["test_both"]["expected"]
    for name, label in ((f"badge-tract-{RECENT}.json", '"brightgreen"'),):
        assert label in (suite.pytester.path / "site" / name).read_text()


def test_a_reason_for_what_is_not_weak_fails(suite):
    suite.pytester.makepyfile(test_it=CASES.replace('"weak"', '"pass"'))
    suite.pytester.makefile(".toml", known=REASON.replace("test_model[weak]", "test_model[pass1]"))
    result = suite.run("--t2n-expect=known.toml", engines="0.23")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines([f"*passes on tract {RECENT}, and known.toml:1 expects weak at stage `compare`*"])


def test_accept_writes_weak_cells_down(suite):
    suite.pytester.makepyfile(test_it=CASES)
    suite.run("--t2n-expect=known.toml", "--t2n-accept", engines="0.23").assert_outcomes(passed=3)
    text = (suite.pytester.path / "known.toml").read_text()
    assert 'status = "weak"' in text
    suite.run("--t2n-expect=known.toml", "--t2n-strict", engines="0.23").assert_outcomes(passed=3)


def test_a_pass_with_nan_says_the_share(suite, mode):
    suite.pytester.makepyfile(test_it=NOT_FINITE)
    result = suite.run("--t2n-report=site", engines="0.23", mode=mode)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "1 pass with NaN or infinities in their outputs*",
            "  test_it.py::test_model?nan-*: y is NaN or infinite in * %*",
        ]
    )
    nan_cell, plain = suite.cells[f"test_model[nan-tract-{RECENT}]"], suite.cells[f"test_model[pass-tract-{RECENT}]"]
    assert 0.2 < nan_cell["outputs"][0]["not_finite"] < 0.8
    (note,) = nan_cell["notes"]
    assert note.startswith("y is NaN or infinite in ")
    assert "notes" not in plain


def test_a_result_that_is_reused_keeps_its_share(suite):
    suite.pytester.makepyfile(test_it=NOT_FINITE)
    for _ in range(2):
        suite.run("--t2n-report=site", "--t2n-reuse", engines="0.23")
        cell = suite.cells[f"test_model[nan-tract-{RECENT}]"]
        assert cell["outputs"][0]["not_finite"] > 0.2
    assert cell["reused"]
