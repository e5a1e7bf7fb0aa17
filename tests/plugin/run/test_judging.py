"""Numbers, metrics and time limits of single tests, in the marker and in a call of the fixture."""

from __future__ import annotations

import pytest

from tests.plugin.judging.bundles import OneMore, judge_here
from tests.releases import RECENT

MARKED = """
    import pytest

    def largest(expected, actual):
        return max(float(abs(a - b).max()) for a, b in zip(expected, actual))

    @pytest.mark.nnef_export({words})
    def test_model():
        return "{model}", (1,)
"""


def one(suite) -> dict:
    (cell,) = suite.cells.values()
    return cell


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("atol=1.0001", "pass"),
        ("atol=0.99", "mismatch"),
        ("atol={'y': 1.0001}", "pass"),
        ("atol={'y': 0.5}, rtol={'y': 0.1}", "mismatch"),
        ("tolerance={'y': 'close'}", "mismatch"),
        ("metric=largest, bound=1.0001", "pass"),
        ("metric=largest, bound=0.9", "mismatch"),
        ("metric=largest, bound=1.0001, tolerance='close'", "mismatch"),
        ("metric=lambda expected, actual: 0, bound=0.1", "weak"),
    ],
)
def test_a_test_says_how_it_is_judged(suite, words, status):
    suite.pytester.makepyfile(test_it=MARKED.format(words=words, model="mismatch"))
    suite.run("--t2n-report=site", engines="0.23")
    assert one(suite)["status"] == status


def test_a_metric_stands_in_record_and_report(suite):
    words = "metric={'worst': largest}, bound={'worst': 0.25}"
    suite.pytester.makepyfile(test_it=MARKED.format(words=words, model="mismatch"))
    result = suite.run("--t2n-report=site", engines="0.23")
    result.stdout.fnmatch_lines(["*metric worst: 1, required <= 0.25, worst at T=5*"])
    cell = one(suite)
    cell["metrics"][0]["value"] = round(cell["metrics"][0]["value"], 5)
    assert cell["metrics"] == [
        {"name": "worst", "required": "<= 0.25", "value": 1.0, "passed": False, "sizes": {"T": 5}}
    ]
    assert "required" not in cell
    assert cell["outputs"][0]["limit"] == "metrics"


def test_bisect_takes_the_outcome_that_there_is(suite):
    suite.pytester.makepyfile(test_it=MARKED.format(words="metric=largest, bound=0.9", model="mismatch"))
    result = suite.run("--t2n-bisect", engines="0.23")
    result.stdout.fnmatch_lines(["*no first wrong node: *"])
    assert len(suite.runs) == 1


CALLS = """
    import pytest

    @pytest.mark.nnef_export(atol=1.0001)
    def test_marker(nnef_export):
        nnef_export("mismatch", (1,)).assert_parity()

    @pytest.mark.nnef_export(atol=1.0001)
    def test_call_wins(nnef_export):
        nnef_export("mismatch", (1,)).assert_parity(atol=0.5)

    @pytest.mark.nnef_export
    def test_option(nnef_export):
        nnef_export("mismatch", (1,), atol=1.0001).assert_parity()

    @pytest.mark.nnef_export
    def test_unknown(nnef_export):
        nnef_export("pass", (1,)).assert_parity(atoll=1)
"""


def test_calls_of_the_fixture(suite):
    suite.pytester.makepyfile(test_it=CALLS)
    result = suite.run("--t2n-report=site", engines="0.23")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["*unknown argument `atoll` of a check; did you mean `atol`*"])
    statuses = {name.partition("[")[0]: cell["status"] for name, cell in suite.cells.items()}
    assert {name: statuses[name] for name in ("test_marker", "test_call_wins", "test_option")} == {
        "test_marker": "pass",
        "test_call_wins": "mismatch",
        "test_option": "pass",
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("atol='much'", "atol='much' is neither a number from 0 on*"),
        ("metric=largest", "metric `largest` has no bound*"),
        ("bound=1", "bound=1 without a metric*"),
        ("timeout=0", "timeout=0 is not a positive number of seconds*"),
        ("timeout='long'", "timeout='long' is not a positive number of seconds*"),
        ("tolerance={'y': 'closer'}", "'closer' is not a tolerance level*"),
    ],
)
def test_wrong_words(suite, words, message):
    suite.pytester.makepyfile(test_it=MARKED.format(words=words, model="pass"))
    result = suite.run(engines="0.23")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*@pytest.mark.nnef_export: *{message}"])


def test_the_time_limit_is_that_of_the_test(suite):
    conftest = suite.path / "conftest.py"
    signature = "def check_parity(self, criteria, *, timeout=60.0):"
    replacement = f'{signature}\n        note(f"seconds {{timeout}}")'
    conftest.write_text(conftest.read_text().replace(signature, replacement, 1))
    suite.pytester.makepyfile(test_it=MARKED.format(words="timeout=7", model="pass"))
    suite.run("--t2n-timeout=30", engines="0.23").assert_outcomes(passed=1)
    assert "main seconds 7.0" in suite.log


def test_a_manifest_in_which_no_number_is_judged_proves_little(suite, monkeypatch, capsys):
    from pytest_t2n.cli import main

    suite.pytester.makepyfile(test_it=MARKED.format(words="tolerance='close'", model="mismatch"))
    suite.run("--t2n-bundle-failures=failures", engines="0.23").assert_outcomes(failed=1)
    (manifest,) = (suite.path / "failures").glob("*/manifest.json")
    text = manifest.read_text()
    assert '"elementwise": true' in text

    judge_here(monkeypatch, OneMore())
    monkeypatch.chdir(suite.path)
    words = ["matrix", "run", "--bundle", "failures", "--tract", RECENT]
    assert main(words) == 1
    assert "mismatch at stage `compare`" in capsys.readouterr().out, "a replay judges as the session did"
    manifest.write_text(text.replace('"elementwise": true', '"elementwise": false'))
    assert main(words) == 1
    assert "weak at stage `compare`" in (out := capsys.readouterr().out)
    assert "the manifest disables the comparison of elements (`elementwise`)" in out


def test_a_bundle_knows_numbers_and_says_that_it_lacks_metrics(suite, monkeypatch):
    from pytest_t2n.cli import main

    suite.pytester.makepyfile(
        test_it=MARKED.format(words="atol=1.0001", model="mismatch"),
        test_metric=MARKED.format(words="metric=largest, bound=1.0001", model="mismatch"),
    )
    suite.run("--t2n-bundle=bundle", engines="0.23").assert_outcomes(passed=2)

    judge_here(monkeypatch, OneMore())
    monkeypatch.chdir(suite.path)
    words = ["matrix", "run", "--bundle", "bundle", "--tract", RECENT, "--report", "judged"]
    assert main(words) == 1
    from pytest_t2n.records.file import read_records
    from pytest_t2n.records.schema import CellLine

    cells = [line for line in read_records(suite.path / "judged" / "matrix.jsonl") if isinstance(line, CellLine)]
    assert {cell.case.partition(":")[0]: cell.status for cell in cells} == {
        "test_it.py": "pass",
        "test_metric.py": "weak",
    }
    assert "the metrics largest are functions of the test" in next(c.error.message for c in cells if c.error)
