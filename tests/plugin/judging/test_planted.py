"""Faults that show in no output by place are red in a session, and in the command that judges its bundle."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from t2n_core.engine.provision.store import default_cache_dir
from tests import planted
from tests.releases import RECENT
from tests.starter import FOR_EXPORTS

CACHE = str(default_cache_dir())
"""Looked up now: pytester gives each test a home without engines."""

PAIR = """
    import pytest
    import torch

    class Pair(torch.nn.Module):
        def forward(self, left, right):
            return left - right, left * right

    @pytest.mark.nnef_export(output_names=["low", "high"])
    def test_pair():
        return Pair(), (torch.randn(3, 4), torch.randn(3, 4))
"""
ENGINES = f"0.22.4,{RECENT}"


def plant(function, argument):
    """Return code that plants a fault wherever it runs."""
    return f"import runpy\nrunpy.run_path({planted.__file__!r})[{function!r}]({argument!r})\n"


def judged(folder, *, first=""):
    """Return the exit code and the cells of `t2n matrix run`, by version; each of its processes runs `first` before."""
    (folder / "sitecustomize.py").write_text(first)
    paths = [str(folder), *(path for path in sys.path if path)]
    command = [sys.executable, "-m", "pytest_t2n.cli", "matrix", "run", "--bundle", "bundle", "--report", "judged"]
    done = subprocess.run(
        [*command, "--tract", ENGINES, "--offline", "--cache-dir", CACHE],
        cwd=folder, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    print(done.stdout, done.stderr)
    lines = map(json.loads, (folder / "judged" / "matrix.jsonl").read_text().splitlines())
    return done.returncode, {line["version"]: line for line in lines if line["type"] == "cell"}


def session(suite, first):
    """Run the test on both engines, with code that the session runs first, and write a bundle."""
    suite.pytester.makeconftest(first)
    suite.pytester.makepyfile(PAIR)
    options = ("--t2n-report=site", "--t2n-bundle=bundle", f"--t2n-cache-dir={CACHE}")
    return suite.run(*options, engines=ENGINES, alone=True, modules=FOR_EXPORTS)


@pytest.mark.parametrize("fault", ["input names", "output names", "order of inputs", "order of external statements"])
def test_an_exchange_is_red_in_a_session_and_where_its_bundle_is_judged(suite, fault):
    result = session(suite, plant("exchange_when_written", fault))
    result.assert_outcomes(failed=2)
    kind = "output" if fault.startswith("output") else "input"
    result.stdout.re_match_lines([rf".*{kind}s.* are `\w+`, `\w+`, and the export declared `\w+`, `\w+`.*"])
    here = {cell["version"]: cell for cell in suite.cells.values()}
    code, there = judged(suite.path)
    assert code == 1
    for cells in (here, there):
        assert {version: cell["error"]["error_class"] for version, cell in cells.items()} == dict.fromkeys(
            ENGINES.split(","), "InterfaceError"
        )
        assert {(cell["status"], cell["stage"]) for cell in cells.values()} == {("error", "load")}


@pytest.mark.parametrize(
    ("path", "wrong"), [("declutter", {"0.22.4", RECENT}), ("optimise-only", {"0.22.4"})]
)  # fmt: skip
def test_a_wrong_path_is_red_in_a_session_and_where_its_bundle_is_judged(suite, path, wrong):
    result = session(suite, plant("spoil_path", path))
    result.assert_outcomes(passed=2 - len(wrong), failed=len(wrong))
    result.stdout.fnmatch_lines([f"*mismatch at stage `compare` in tract 0.22.4 on the path `{path}`*"])
    here = {cell["version"] for cell in suite.cells.values() if cell["status"] == "mismatch"}
    code, cells = judged(suite.path, first=plant("spoil_path", path))
    there = {version for version, cell in cells.items() if cell["status"] == "mismatch"}
    assert (code, here, there) == (1, wrong, wrong)


def test_a_bundle_without_a_declaration_is_judged_without_it(suite):
    result = session(suite, plant("exchange_when_written", "output names"))
    result.assert_outcomes(failed=2)
    manifest = suite.path / "bundle" / "manifest.json"
    content = json.loads(manifest.read_text())
    declared = [check.pop("interface") for check in content["checks"]]
    assert [port["name"] for port in declared[0]["outputs"]] == ["low", "high"]
    manifest.write_text(json.dumps(content))
    code, cells = judged(suite.path)
    assert (code, {cell["status"] for cell in cells.values()}) == (0, {"pass"})
