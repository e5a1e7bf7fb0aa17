"""Files of `nnef_file` in the bundles of a session, which are judged again without it."""

from __future__ import annotations

import json

import onnx
import pytest

from pytest_t2n.cli import main
from t2n_core.engine.provision.store import default_cache_dir
from tests.onnx_nets import linear, lstm, saved
from tests.releases import LINES, RECENT
from tests.starter import FOR_EXPORTS

CACHE = str(default_cache_dir())
"""Looked up now: pytester gives each test a home without engines."""
TEST = """
import pytest


@pytest.mark.parametrize("name", ["linear", "reverse"])
def test_net(nnef_check, name):
    nnef_check(f"{name}.onnx")


@pytest.mark.nnef_file("archive")
def test_archive():
    pass
"""
SAME = ("status", "stage", "level", "required", "outputs", "sizes")
GRAPH = "version 1.0;\ngraph g(x) -> (y)\n{\n  x = external(shape = [2, 3]);\n  y = relu(x);\n}\n"


@pytest.fixture(autouse=True)
def engines(resolved_engine):
    """Fetch the engines, since the commands below are offline."""
    for release in (LINES[-2], RECENT):
        resolved_engine(release)


def test_files_are_judged_again_from_a_bundle(suite, capsys, tmp_path):
    suite.pytester.makeconftest("")
    onnx.save(linear(), suite.path / "linear.onnx", save_as_external_data=True, location="w", size_threshold=0)
    saved(lstm("reverse"), suite.path / "reverse.onnx")
    (suite.path / "archive").mkdir()
    (suite.path / "archive" / "graph.nnef").write_text(GRAPH)
    (suite.path / "test_it.py").write_text(TEST)
    files = ("--t2n-bundle=bundle", "--t2n-bundle-failures=failures", "--t2n-reduce=small", "--t2n-report=site")
    options = (f"--t2n-cache-dir={CACHE}", "--t2n-offline", "--t2n-bisect-releases", *files)
    result = suite.run(*options, engines=RECENT, alone=True, modules=FOR_EXPORTS)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["no boundary: the outcome is the same in all of them"])
    result.stdout.fnmatch_lines(["reduced: mismatch at compare, of `LSTM`: 1 operator, *"])
    result.stdout.fnmatch_lines(["reproduce: t2n matrix run --bundle */failures/test_net*"])
    in_session = suite.cells

    bundle, failures = suite.path / "bundle", suite.path / "failures"
    for name in ("linear.onnx", "w", "reverse.onnx"):
        (suite.path / name).unlink()
    chosen = ["--offline", "--cache-dir", CACHE, "--tract", f"{LINES[-2]},{RECENT}"]
    assert main(["matrix", "run", "--bundle", str(bundle), *chosen, "--report", str(tmp_path / "again")]) == 1
    lines = map(json.loads, (tmp_path / "again" / "matrix.jsonl").read_text().splitlines())
    again = {cell["nodeid"].rpartition("::")[2]: cell for cell in lines if cell["type"] == "cell"}
    assert len(again) == 6
    for name, cell in in_session.items():
        assert [again[name].get(key) for key in SAME] == [cell.get(key) for key in SAME]
    message = "1 of 1 outputs differ from onnxruntime beyond `approximate`: y"
    assert again[f"test_net[reverse-tract-{RECENT}]"]["error"]["message"] == message
    assert not any("exported_for" in cell["facts"] for cell in again.values())
    assert again[f"test_net[reverse-tract-{LINES[-2]}]"]["status"] == "mismatch"

    capsys.readouterr()
    assert main(["bisect-releases", str(failures), "--offline", "--cache-dir", CACHE, "--json"]) == 0
    (bisection,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert set(bisection["endings"].values()) == {"mismatch at compare"}
