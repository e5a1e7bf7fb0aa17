"""The hooks `pytest_t2n_*` of a conftest.py: engines, judgement, records and report."""

from __future__ import annotations

import pytest

from tests.plugin.suites import marked
from tests.releases import RECENT

CASES = """
    import pytest

    @pytest.mark.nnef_export
    def test_model():
        return "mismatch", (1,)

    @pytest.mark.nnef_export(atol=0.5)
    def test_marker():
        return "mismatch", (1,)
"""


def add_to_conftest(suite, text: str) -> None:
    conftest = suite.path / "conftest.py"
    conftest.write_text(conftest.read_text() + text)


@pytest.mark.parametrize("mode", ["plain", "n2"])
def test_each_hook(suite, mode):
    add_to_conftest(
        suite,
        """

def pytest_t2n_engines(config, engines):
    engines[:] = [engine for engine in engines if engine.version != "0.22.4"]


def pytest_t2n_judgement(item, engine):
    return {"atol": 1.0001} if engine.version != "0.21.19" else None


def pytest_t2n_record(config, record):
    note(f"record {record.case.partition('::')[2]} {record.version} {record.status}")


def pytest_t2n_report(config, directory):
    (directory / "more.txt").write_text("more")
    return f"also {directory.name}/more.txt"
""",
    )
    suite.pytester.makepyfile(test_it=CASES)
    result = suite.run("--t2n-report=site", mode=mode)
    result.assert_outcomes(passed=1, failed=3)
    result.stdout.fnmatch_lines(["*also site/more.txt*"])
    assert (suite.path / "site" / "more.txt").read_text() == "more"
    records = sorted(line.partition(" ")[2] for line in suite.log if " record " in line)
    assert records == [
        "record test_marker 0.21.19 mismatch",
        f"record test_marker {RECENT} mismatch",
        "record test_model 0.21.19 mismatch",
        f"record test_model {RECENT} pass",
    ]
    assert not [line for line in suite.log if line.startswith("gw") and " record " in line]


def test_a_hook_with_a_wrong_argument(suite):
    add_to_conftest(suite, "\n\ndef pytest_t2n_judgement(item, engine):\n    return {'atoll': 1}\n")
    suite.pytester.makepyfile(test_it=CASES)
    result = suite.run(engines="0.23")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*unknown argument `atoll` of a check*"])


def test_a_hook_that_does_not_exist(suite):
    add_to_conftest(suite, "\n\ndef pytest_t2n_engine(config):\n    pass\n")
    suite.pytester.makepyfile(test_it=CASES)
    result = suite.run(engines="0.23")
    assert result.ret != 0
    assert "unknown hook 'pytest_t2n_engine'" in result.stdout.str() + result.stderr.str()


TWO = marked('["pass", "mismatch"]')


@pytest.mark.parametrize("mode", ["plain", "n2"])
@pytest.mark.parametrize("raising", ["raise ValueError('boom')", "pytest.fail('boom')", "pytest.skip('boom')"])
def test_hooks_that_raise_cost_no_results(suite, mode, raising):
    hooks = f"""

import pytest


def pytest_t2n_record(config, record):
    {raising}


def pytest_t2n_report(config, directory):
    {raising}
"""
    add_to_conftest(suite, hooks)
    suite.pytester.makepyfile(test_it=TWO)
    result = suite.run("--t2n-report=site", "-k", "pass", engines="0.22,0.23", mode=mode)
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert set(suite.statuses.values()) == {"pass"}
    result.stdout.fnmatch_lines(
        ["problem: pytest_t2n_record raised *: boom (*), 2 times", "problem: pytest_t2n_report raised *: boom (*)"]
    )


def test_a_hook_can_end_the_session(suite):
    add_to_conftest(suite, "\n\nimport pytest\n\n\ndef pytest_t2n_record(record):\n    pytest.exit('enough', 9)\n")
    suite.pytester.makepyfile(test_it=TWO)
    result = suite.run("--t2n-report=site", engines="0.23")
    assert result.ret == 9
    assert sorted(suite.statuses.values()) == ["not_run", "pass"]


def test_a_text_of_the_report_hook_may_be_anything(suite):
    add_to_conftest(suite, "\n\ndef pytest_t2n_report(directory):\n    return directory / 'more.txt'\n")
    suite.pytester.makepyfile(test_it=TWO)
    result = suite.run("--t2n-report=site", "-k", "pass", engines="0.23")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*/site/more.txt"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("raise ValueError('boom')", "pytest_t2n_engines raised ValueError: boom (conftest.py:*)"),
        (f"engines.append('{RECENT}')", f"pytest_t2n_engines: '{RECENT}' is not a SelectedEngine"),
        ("engines.append(engines[0])", f"pytest_t2n_engines: 2 engines are called tract-{RECENT}; give each a label"),
        (
            "engines.append(SelectedEngine('ort', '1', '1'))",
            "*has the target 'ort', which is neither *",
        ),
        ("engines.append(SelectedEngine('tract', '1', '1'))", "*has no files to run: *"),
        ("raise pytest.UsageError('mine')", "mine"),
    ],
)
def test_engines_that_hooks_give_are_checked(suite, change, words):
    imports = "import pytest\nfrom pytest_t2n.records.cell import SelectedEngine"
    add_to_conftest(suite, f"\n\n{imports}\n\n\ndef pytest_t2n_engines(engines):\n    {change}\n")
    suite.pytester.makepyfile(test_it=TWO)
    result = suite.run(engines="0.23")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {words}"])
