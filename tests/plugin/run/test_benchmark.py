"""`--t2n-benchmark`: times of real engines in pytest-benchmark's own table, JSON and comparison."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from t2n_core.engine.provision.store import default_cache_dir
from tests.plugin.conftest import MODES
from tests.releases import RECENT
from tests.starter import FOR_EXPORTS

CACHE = f"--t2n-cache-dir={default_cache_dir()}"
"""Looked up now: pytester gives each test a home without engines."""

MODEL = """
    import pytest
    import torch

    @pytest.mark.nnef_export
    @pytest.mark.parametrize("width", [4, 6])
    def test_linear(width):
        return torch.nn.Linear(width, 3).eval(), torch.randn(5, width)

    @pytest.mark.nnef_export(training="refuse")
    def test_wrong():
        return torch.nn.Dropout(0.5), torch.randn(3, 4)  # in training mode: refused, and so not measured
"""


def run(suite, where, *arguments):
    options = ("--t2n-benchmark", "--t2n-report=site", CACHE, "-p", "no:hypothesispytest")
    return suite.start(f"--t2n-tract=0.21.19,{RECENT}", *options, *MODES[where], *arguments, modules=FOR_EXPORTS)


@pytest.mark.parametrize("where", ["n0", "n2", "no_xdist"])
def test_export_load_and_run_are_measured(suite, where):
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile(test_it=MODEL)
    result = run(suite, where, "--benchmark-json=times.json", "--benchmark-autosave", "--benchmark-min-rounds=3")
    result.assert_outcomes(passed=4, failed=2)
    report = json.loads((suite.path / "times.json").read_text())
    names = {bench["name"]: bench for bench in report["benchmarks"]}
    assert sorted(names) == sorted(
        f"{stage} test_linear[{width}] tract {version}"
        for stage in ("export", "load", "run")
        for width in (4, 6)
        for version in ("0.21.19", RECENT)
    )
    for name, bench in names.items():
        assert len(bench["stats"]["data"]) == (1 if name.startswith("export") else 3)
        assert 0 < bench["stats"]["min"] < 30
        assert bench["group"] == name.rpartition(" tract")[0]
        assert bench["extra_info"]["indicative"] == (where == "n2")
        assert bench["fullname"].startswith("test_it.py::test_linear[")
    run_of = names[f"run test_linear[4] tract {RECENT}"]["stats"]
    assert run_of["iterations"] > 1
    assert run_of["max"] < 0.1, "seconds of one run, not of a round"
    assert ("the times are indicative" in result.stdout.str()) == (where == "n2")
    result.stdout.fnmatch_lines(["*benchmark 'run test_linear[[]4[]]': 2 tests*"])
    line = suite.cells[f"test_linear[4-tract-{RECENT}]"]["benchmark"]
    assert len(line["run"]) == len(line["load"]) == 3
    assert line["runs"] == run_of["iterations"]
    assert line["export"] == pytest.approx(names[f"export test_linear[4] tract {RECENT}"]["stats"]["data"])
    if where == "n0":
        again = run(suite, where, "--benchmark-compare", "--benchmark-compare-fail=min:100000%")
        again.stdout.fnmatch_lines([f"*run test_linear[[]4[]] tract {RECENT} (0001_*", "*(NOW)*"])


def test_without_the_plugin_it_is_a_usage_error(suite):
    suite.pytester.makepyfile("def test_it(): pass")
    result = suite.run("--t2n-benchmark", engines="0.23")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --t2n-benchmark: the plugin pytest-benchmark is not loaded*"])


@pytest.mark.parametrize(
    ("arguments", "variable", "shown"),
    [
        ((), "", False),
        (("--t2n-benchmark",), "", True),
        (("--benchmark-min-rounds=3",), "", True),
        ((), "--benchmark-min-rounds=3", True),
    ],
)
def test_pytest_benchmark_has_a_header_only_where_it_is_used(suite, arguments, variable, shown):
    suite.pytester.makepyfile("def test_nothing(): pass")
    process = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:hypothesispytest", "-p", "no:cacheprovider", *arguments],
        cwd=suite.path,
        env={**os.environ, "PYTEST_ADDOPTS": variable},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ("\nbenchmark: " in process.stdout) is shown
    assert "\nplugins: " in process.stdout


@pytest.mark.parametrize("arguments", [("-q",), ("-q", "-n2"), ("--markers",), ("-q", "--benchmark-autosave")])
def test_the_folder_of_pytest_benchmark_stays_only_with_benchmarks(suite, arguments):
    suite.pytester.makepyfile("def test_nothing(benchmark): benchmark(int)")
    command = [sys.executable, "-m", "pytest", "-p", "no:hypothesispytest", "-p", "no:cacheprovider", *arguments]
    subprocess.run(command, cwd=suite.path, capture_output=True, check=True)
    assert (suite.path / ".benchmarks").exists() is ("--benchmark-autosave" in arguments)
