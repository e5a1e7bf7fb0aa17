"""`t2n reduce` on cases of real engines, and the option of a session."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pytest_t2n.cli import main
from t2n_core.engine.provision.store import default_cache_dir
from t2n_core.nnef.reading.archive import read_archive
from tests.starter import FOR_EXPORTS
from tests.tract_cli import make_cli

CACHE = str(default_cache_dir())
"""Looked up now: pytester gives each test a home without engines."""
WINDOW = """version 1.0;
graph network(x) -> (y)
{
  x = external(shape = [1, 2, 8]);
  a = tanh(x);
  b = slice(a, axes = [1], begin = [1], end = [9]);
  y = exp(b);
}
"""
"""Refused from 0.23.0 on: the slice ends beyond the axis."""


def t2n(*arguments: object) -> int:
    return main(["reduce", "--offline", "--cache-dir", CACHE, *map(str, arguments)])


@pytest.fixture
def window(tmp_path: Path) -> Path:
    folder = tmp_path / "window"
    folder.mkdir()
    (folder / "graph.nnef").write_text(WINDOW)
    x = np.ones((1, 2, 8), np.float32)
    np.savez(folder / "io.npz", x=x, y=np.exp(np.tanh(x))[:, 1:])
    return folder


def test_a_case_is_reduced_into_a_folder(window: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "out"
    assert t2n(window, "--engine", "0.23.9", "-o", output) == 0
    said = capsys.readouterr().out
    assert "error at load" in said
    assert "of `slice`: 1 operator, " in said
    assert [one.operator for one in read_archive(output).document.assignments][-1] == "slice"
    assert t2n(output, "--engine", "0.23.9", "-o", output) == 0, "a result can be reduced again"


def test_an_engine_has_to_be_named(window: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert t2n(window, "-o", tmp_path / "out") == 1
    assert "name the engine that fails with --engine" in capsys.readouterr().err
    assert t2n(window, "--engine", "0.22.4", "-o", tmp_path / "out") == 1
    assert "it does not fail in tract 0.22.4" in capsys.readouterr().err


MODEL = """
import pytest, torch


@pytest.mark.nnef_export
def test_net():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.ReLU()).eval(), torch.randn(2, 5)
"""


def test_a_failing_cell_is_reduced(suite, resolved_engine) -> None:
    binary = make_cli(suite.path, resolved_engine("0.23.9"), spoil="outputs[0] = outputs[0] + 1")
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile(test_net=MODEL)
    given = ("--t2n-reduce=small", "--t2n-offline", f"--t2n-cache-dir={CACHE}")
    result = suite.run(*given, engines=f"path:{binary}", alone=True, modules=FOR_EXPORTS)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*reduced: mismatch at compare*: 1 operator, 1 element, *, oracle tract 0.23.9"])
    (folder,) = (suite.path / "small").iterdir()
    assert sorted(file.name for file in folder.iterdir()) == ["graph.nnef", "io.npz", "origins.json"]
    assert "aten::linear" in (folder / "origins.json").read_text("utf-8")


WRONG_RULE = """
import pytest, torch
from t2n_core import ModelExport
from t2n_core.op.registry import Rule, load_default


@pytest.mark.nnef_export
def test_tanh(nnef_export):
    rules = load_default().copy()
    rules.remove("aten::tanh")
    rules.add(Rule("aten::tanh", lambda g, self: g.mul(g.tanh(self), 1.01), parameters=frozenset({"self"})))
    nnef_export(ModelExport(torch.nn.Tanh(), torch.randn(2, 5), rules=rules)).assert_parity()
"""


def test_a_wrong_graph_is_no_failure_of_the_engine(suite) -> None:
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile(test_wrong=WRONG_RULE)
    given = ("--t2n-reduce=small", "--t2n-offline", f"--t2n-cache-dir={CACHE}")
    result = suite.run(*given, engines="0.23.9", alone=True, modules=FOR_EXPORTS)
    result.stdout.fnmatch_lines(["*not reduced: float64 computes what tract 0.23.9 does*", "*hint: *--t2n-bisect*"])
