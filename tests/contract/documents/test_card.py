"""The items of the user's card: the marker, the fixture and the session that a user types."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from t2n_core.engine.khronos import why_no_khronos
from t2n_core.engine.provision.store import default_cache_dir
from tests.pages import ROOT

DIFFERS = {
    "packages_are_required": "torch and nnef-tools are extras: bundles and reports need neither, and a project has its "
    "own torch",
}
"""Item -> why it does not hold as written."""

CACHE = f"--t2n-cache-dir={default_cache_dir()}"
"""Looked up now: pytester gives each test a home without engines."""
SUITE = """
import pytest
import torch
from torch import nn

ENGINES_IN_CACHE = ("0.21",)

class Encoder(nn.Module):
    def __init__(self, bidirectional):
        super().__init__()
        self.rnn = nn.GRU(3, 2, bidirectional=bidirectional, batch_first=True)

    def forward(self, audio):
        return self.rnn(audio)[0]

@pytest.mark.nnef_export(target="tract", dynamic_axes={"audio": {1: "T"}}, tolerance="approximate")
@pytest.mark.parametrize("bidirectional", [False, True])
def test_marker(bidirectional):
    return Encoder(bidirectional), {"audio": torch.randn(2, 4, 3)}

@pytest.mark.nnef_export
def test_fixture(nnef_export):
    result = nnef_export(nn.Tanh(), torch.randn(2, 3))
    result.assert_parity("close")

@pytest.mark.nnef_export(target=["tract", "khronos"])
def test_both():
    return nn.Tanh(), torch.randn(2, 3)
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_XDIST_TESTRUNUID", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makepyfile(test_card=SUITE)
    return pytester


def run(suite: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    plugins = ("-p", "no:benchmark", "-p", "no:hypothesispytest")
    return suite.runpytest_subprocess("--t2n-offline", CACHE, "--t2n-report=site", *plugins, *arguments)


def statuses(suite: pytest.Pytester) -> dict[str, str]:
    lines = map(json.loads, Path(suite.path, "site", "matrix.jsonl").read_text("utf-8").splitlines())
    return {one["nodeid"].partition("::")[2]: one["status"] for one in lines if one["type"] == "cell"}


def test_the_marked_test_returns_model_and_inputs(suite: pytest.Pytester) -> None:
    """A test with the marker returns (model, inputs), and runs once for each parameter and engine."""
    run(suite, "--t2n-tract=0.21", "-k", "marker").assert_outcomes(passed=2)
    assert statuses(suite) == {f"test_marker[{one}-tract-0.21.19]": "pass" for one in (False, True)}


def test_the_fixture_exports_and_asserts_parity(suite: pytest.Pytester) -> None:
    """The fixture `nnef_export` returns a result whose `assert_parity` compares."""
    run(suite, "--t2n-tract=0.21", "-k", "fixture").assert_outcomes(passed=1)
    assert statuses(suite) == {"test_fixture[tract-0.21.19]": "pass"}


def test_tract_0_21_with_xdist(suite: pytest.Pytester) -> None:
    """`pytest --t2n-tract=0.21 -n auto` runs the suite on the newest release of that line."""
    result = run(suite, "--t2n-tract=0.21", "-n", "auto")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["t2n: tract 0.21.19 (0.21)*"])
    assert set(statuses(suite).values()) == {"pass"}


@pytest.mark.skipif(bool(why_no_khronos()), reason="the Khronos tools are not installed")
def test_target_is_a_list_of_tract_and_khronos(suite: pytest.Pytester) -> None:
    """`target=["tract", "khronos"]` is a cell on each engine."""
    run(suite, "--t2n-tract=0.21", "--t2n-khronos", "-k", "both").assert_outcomes(passed=2)
    assert statuses(suite) == {"test_both[tract-0.21.19]": "pass", "test_both[khronos]": "pass"}


def test_tract_alone_reports_the_khronos_half(suite: pytest.Pytester) -> None:
    """With `--t2n-tract` alone the khronos half of a test is reported as not run, and fails `--t2n-require`."""
    words = ["not run, as no engine of this session fits: 1 cells that markers require", "  *test_both on khronos"]
    result = run(suite, "--t2n-tract=0.21", "-k", "both")
    result.stdout.fnmatch_lines(words)
    assert result.ret == pytest.ExitCode.OK
    required = run(suite, "--t2n-tract=0.21", "-k", "both", "--t2n-require")
    required.stdout.fnmatch_lines([*words, "problem: --t2n-require: markers name targets that this session has no *"])
    assert required.ret == pytest.ExitCode.TESTS_FAILED


def test_packages_are_required_differs() -> None:
    """The packages are torch, nnef-tools, pytest and pytest-xdist."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    required, extras = " ".join(project["dependencies"]), project["optional-dependencies"]
    assert "pytest" in required
    assert "xdist" in required
    assert any(one.startswith("torch>=") for one in extras["torch"])
    assert any(one.startswith("nnef-tools>=") for one in extras["khronos"])


def test_every_difference_has_a_test() -> None:
    """Each reason is that of one test of this file."""
    names = {name.removeprefix("test_").removesuffix("_differs") for name in globals() if name.endswith("_differs")}
    assert names == set(DIFFERS)
