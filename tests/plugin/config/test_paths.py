"""Paths through tract that a session selects."""

from __future__ import annotations

import json

import pytest

from tests.releases import RECENT

TEST = """
    import pytest, torch
    from torch import nn

    @pytest.mark.nnef_export(dynamic_axes={"input": {0: "B"}})
    def test_linear():
        torch.manual_seed(0)
        return nn.Linear(4, 3), torch.randn(2, 4)
"""


@pytest.mark.parametrize(
    ("options", "release", "paths"),
    [
        ([], "0.22.4", ["declutter", "optimise-only", "fixed-symbols"]),
        ([], RECENT, ["declutter", "fixed-symbols"]),
        (["--t2n-paths=optimise-only"], "0.22.4", ["optimise-only"]),
    ],
)
def test_a_record_has_the_paths_that_were_checked(
    pytester: pytest.Pytester, options: list[str], release: str, paths: list[str]
) -> None:
    pytester.makepyfile(TEST)
    result = pytester.runpytest_subprocess(f"--t2n-tract={release}", "--t2n-report=site", *options)
    result.assert_outcomes(passed=1)
    lines = (pytester.path / "site" / "matrix.jsonl").read_text("utf-8").splitlines()
    (cell,) = [record for record in map(json.loads, lines) if record["type"] == "cell"]
    assert cell["paths"] == paths
    assert "path" not in cell


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ("declutters", "*--t2n-paths: 'declutters' is not a path of the engine*"),
        ("optimise-only", f"*--t2n-paths=optimise-only: tract {RECENT} has none of these paths*"),
    ],
)
def test_paths_that_no_release_has_are_an_error(pytester: pytest.Pytester, paths: str, message: str) -> None:
    pytester.makepyfile(TEST)
    result = pytester.runpytest_subprocess(f"--t2n-tract={RECENT}", f"--t2n-paths={paths}")
    result.stderr.fnmatch_lines([message])
    assert result.ret == pytest.ExitCode.USAGE_ERROR
