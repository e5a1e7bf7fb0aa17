"""`t2n bundle --format matrix`: archives that no test wrote, judged in releases and kept in a history."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pytest_t2n.cli import main
from t2n_core.engine.provision.store import default_cache_dir
from tests.releases import RECENT

ENGINES_IN_CACHE = ("0.22.4", RECENT)
CACHE = str(default_cache_dir())
GRAPH = """version 1.0;
graph network(x) -> (y)
{
  x = external(shape = [2, 5]);
  a = mul(x, 1000.0);
  y = FUNCTION(a);
}
"""


@pytest.fixture
def archives(tmp_path: Path) -> Path:
    """A folder of archives: right, wrong in every release, refused, with outputs of its own, and damaged."""
    folder = tmp_path / "all"
    for name, function in {"right": "tanh", "deep/wrong": "softplus", "own": "relu"}.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "graph.nnef").write_text(GRAPH.replace("FUNCTION", function))
    x = np.linspace(-1, 1, 10, dtype=np.float32).reshape(2, 5)
    np.savez(folder / "own" / "io.npz", x=x, y=x)
    (folder / "damaged.nnef.tgz").write_text("no archive")
    (folder / "README.md").write_text("archives of somebody")
    return folder


def run(bundle: Path, report: Path) -> int:
    options = ["--tract", f"0.22.4,{RECENT}", "--report", str(report), "--offline", "--cache-dir", CACHE]
    return main(["matrix", "run", "--bundle", str(bundle), *options])


def test_archives_of_a_folder_are_judged_night_after_night(
    archives: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = tmp_path / "bundle"
    assert run(archives, tmp_path / "site") == 1
    assert f"`t2n bundle {archives} --format matrix -o bundle`" in capsys.readouterr().err
    assert main(["bundle", str(archives), "--format", "matrix", "-o", str(bundle)]) == 1
    stdout = capsys.readouterr().out
    assert "damaged.nnef.tgz is left out: " in stdout
    assert "right: 6 sets of inputs, outputs by the definitions of the operators" in stdout
    assert "own: 1 set of inputs, outputs by the expected outputs" in stdout
    assert "3 of 4 files" in stdout
    for night in ("one", "two"):
        assert run(bundle, tmp_path / night) == 1
        cells = [json.loads(line) for line in (tmp_path / night / "matrix.jsonl").read_text().splitlines()]
        statuses = {cell["nodeid"]: cell["status"] for cell in cells if cell["type"] == "cell"}
        expected = {"deep/wrong": "mismatch", "own": "mismatch", "right": "pass"}
        assert statuses == {f"{name}[tract-{v}]": is_ for name, is_ in expected.items() for v in ENGINES_IN_CACHE}
        assert main(["history", "add", str(tmp_path / night), "--to", str(tmp_path / "history")]) == 0
    assert main(["history", "html", str(tmp_path / "history"), "-o", str(tmp_path / "page")]) == 0
    assert (tmp_path / "page" / "index.html").exists()
    capsys.readouterr()
    assert main(["matrix", "diff", str(tmp_path / "one"), str(tmp_path / "two")]) == 0


def test_what_no_bundle_is_made_of(archives: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def told(*arguments: object) -> str:
        assert main(["bundle", *map(str, arguments), "--format", "matrix", "-o", str(tmp_path / "bundle")]) == 1
        return capsys.readouterr().err

    (tmp_path / "empty").mkdir()
    assert "has no archives and no ONNX models" in told(tmp_path / "empty")
    assert "there is no" in told(tmp_path / "nothing")
    assert "--inputs is for one file" in told(archives, "--inputs", archives / "own" / "io.npz")
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "mine.txt").write_text("")
    assert "holds something that is not a bundle" in told(archives)


def test_one_archive_with_a_level(archives: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    written = ["--format", "matrix", "--level", "very", "-o", str(bundle)]
    assert main(["bundle", str(archives / "right"), *written]) == 0
    assert main(["bundle", str(archives / "right"), *written]) == 0
    (check,) = json.loads((bundle / "manifest.json").read_text())["checks"]
    assert (check["case"], check["tolerance"]) == ("right", "very")
    assert run(bundle, tmp_path / "site") == 0
