"""`t2n reduce` on cases of real engines, and the option of a session."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from pytest_t2n.cli import main
from pytest_t2n.cli.upstream.given import Given, read_given
from pytest_t2n.cli.upstream.reduce import folders_of
from t2n_core.engine.provision.store import default_cache_dir
from t2n_core.nnef.reading.archive import read_archive
from t2n_core.parity.request import CheckRequest
from tests.releases import RECENT
from tests.starter import FOR_EXPORTS
from tests.tract_cli import make_cli

ENGINES_IN_CACHE = ("0.22.4", RECENT)

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
    assert t2n(window, "--engine", RECENT, "-o", output) == 0
    stdout = capsys.readouterr().out
    assert "error at load" in stdout
    assert "of `slice`: 1 operator, " in stdout
    assert [assignment.operator for assignment in read_archive(output).document.assignments][-1] == "slice"
    assert t2n(output, "--engine", RECENT, "-o", output) == 0, "a result can be reduced again"


SOFT = """version 1.0;
extension tract_registry tract_core;
extension tract_symbol N;
graph network(x) -> (y)
{
  x = external(shape = [N, 5]);
  a = tract_core_erf(x);
  b = mul(a, 1000.0);
  c = softplus(b);
  y = tract_core_product_reduce(c, axes = [1]);
}
"""
"""Wrong in every release, with operators that the standard does not have."""


@pytest.mark.parametrize("has_inputs", [True, False])
def test_an_archive_without_a_model_is_reduced_by_definitions(
    has_inputs: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive, output = tmp_path / "soft", tmp_path / "out"
    archive.mkdir()
    (archive / "graph.nnef").write_text(SOFT)
    np.savez(tmp_path / "x.npz", x=np.full((2, 5), 0.5, np.float32))
    inputs = ("--inputs", tmp_path / "x.npz") if has_inputs else ()
    assert t2n(archive, *inputs, "--engine", RECENT, "-o", output) == 0
    stdout = capsys.readouterr().out
    assert "mismatch at compare, of `softplus`: 1 operator, 1 element" in stdout
    assert "oracle definitions" in stdout
    arrays = np.load(output / "io.npz")
    (call,) = [
        assignment for assignment in read_archive(output).document.assignments if assignment.operator == "softplus"
    ]
    x, y = (arrays[name] for name in (str(next(iter(call.names()))), call.results[0]))
    np.testing.assert_allclose(y, np.logaddexp(0, x), rtol=1e-6)


def test_what_the_definitions_compute_as_well_is_not_reduced(
    window: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The expected values are those of another model."""
    (window / "graph.nnef").write_text(WINDOW.replace("end = [9]", "end = [2]"))
    x = np.ones((1, 2, 8), np.float32)
    np.savez(window / "io.npz", x=x, y=np.sin(x)[:, 1:])
    assert t2n(window, "--engine", RECENT, "-o", tmp_path / "out") == 1
    assert f"the oracle, definitions, computes what tract {RECENT} does" in capsys.readouterr().err


def test_an_engine_has_to_be_named(window: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert t2n(window, "-o", tmp_path / "out") == 1
    assert "name the engine that fails with --engine" in capsys.readouterr().err
    assert t2n(window, "--engine", "0.22.4", "-o", tmp_path / "out") == 1
    assert "it does not fail in tract 0.22.4" in capsys.readouterr().err


def given(name: str, archive: Path = Path("m.tgz")) -> Given:
    return Given(name, CheckRequest(archive, [], ["y"]))


@pytest.mark.parametrize(
    ("names", "folders"),
    [
        (["a.py::test_m"], ["out"]),
        (["a.py::test_m", "a.py::test_n[1-é]"], ["out/test_m", "out/test_n_1-_"]),
        (["one/t.py::test_m", "two/t.py::test_m", "t.py::x"], ["out/one_t.py_test_m", "out/two_t.py_test_m", "out/x"]),
        (["a.py::m[+]", "a.py::m[-+]", "a.py::m[?]"], ["out/a.py_m_", "out/m_-_", "out/a.py_m_-2"]),
        (["a.py::m", "a.py::m", "b.py::M"], ["out/a.py_m", "out/a.py_m-2", "out/M"]),
        (["a.py::m[1]", "b.py::M[1]"], ["out/m_1_", "out/M_1_-2"]),
        ([f"a.py::{'m' * 999}1", f"a.py::{'m' * 999}2"], [f"out/a.py_{'m' * 145}", f"out/a.py_{'m' * 145}-2"]),
    ],
)
def test_each_case_has_a_folder_of_its_own(names: list[str], folders: list[str]) -> None:
    assert folders_of(Path("out"), [given(name) for name in names]) == [Path(folder) for folder in folders]


def test_a_case_that_cannot_be_reduced_leaves_the_others(
    window: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (failing,) = read_given(window)
    x = np.ones((1, 2, 8), np.float32)
    right = tmp_path / "right"
    right.mkdir()
    (right / "graph.nnef").write_text(WINDOW.replace("end = [9]", "end = [2]"))
    np.savez(right / "io.npz", x=x, y=np.exp(np.tanh(x))[:, 1:])
    (passing,) = read_given(right)
    monkeypatch.setattr("pytest_t2n.cli.upstream.reduce.given_of", lambda options: [passing, failing])
    assert t2n(window, "--engine", RECENT, "-o", tmp_path / "out") == 1
    stdout = capsys.readouterr().out
    assert f"right: it does not fail in tract {RECENT}" in stdout
    assert "of `slice`: 1 operator, " in stdout
    assert "1 of 2 cases were not done" in stdout
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["window"]


def test_members_that_lead_out_of_a_failing_archive_are_written_nowhere(
    window: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, written in (("../../escaped", True), (f"{tmp_path}/escaped", True), ("../escaped.dat", False)):
        archive = tmp_path / "m.nnef.tgz"
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(window / "graph.nnef", "graph.nnef")
            member = tarfile.TarInfo(name)
            member.size = 5
            tar.addfile(member, io.BytesIO(b"owned"))
        folder = tmp_path / "out" / str(len(name)) / "case"
        arguments = [archive, "--inputs", window / "io.npz", "--format", "tract", "--engine", RECENT, "-o", folder]
        done = main(["bundle", "--offline", "--cache-dir", CACHE, *map(str, arguments)])
        assert (done == 0, folder.exists()) == (written, written), capsys.readouterr().err
        assert not list(tmp_path.rglob("escaped*"))
        assert not list(tmp_path.parent.glob("escaped*"))


ESCAPES = "\x1b]0;pwned\x07\x1b[31m"


@pytest.mark.parametrize(
    ("operation", "word"),
    [
        (f"{ESCAPES}(x)", "cannot be read as NNEF"),
        (f"tract_core_cast(x, to = '{ESCAPES}')", "tract_core_cast"),
        (f"variable<scalar>(shape = [2], label = '{ESCAPES}')", "the archive has no weight"),
    ],
    ids=["syntax", "text", "label"],
)
@pytest.mark.parametrize("command", ["reduce", "bundle", "check"])
def test_control_characters_of_an_archive_are_shown(
    command: str, operation: str, word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    text = f"version 1.0;\n\ngraph net(x) -> (y)\n{{\n  x = external(shape = [2]);\n  y = {operation};\n}}\n"
    (folder / "graph.nnef").write_text(text)
    x = np.ones(2, np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    np.savez(tmp_path / "y.npz", y=x)
    np.savez(tmp_path / "io.npz", x=x, y=x)
    arguments = {
        "reduce": ["--inputs", "io.npz", "--engine", RECENT, "-o", "out"],
        "bundle": ["--inputs", "io.npz", "--format", "tract", "--engine", RECENT, "-o", "out"],
        "check": ["--inputs", "x.npz", "--expected", "y.npz", "--tract", RECENT],
    }[command]
    arguments = [
        str(tmp_path / argument) if argument.endswith(".npz") or argument == "out" else argument
        for argument in arguments
    ]
    main([command, str(folder), "--offline", "--cache-dir", CACHE, *arguments])
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    assert command != "reduce" or word in out + err


MODEL = """
import pytest, torch


@pytest.mark.nnef_export
def test_net():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.ReLU()).eval(), torch.randn(2, 5)
"""


def test_a_failing_cell_is_reduced(suite, resolved_engine) -> None:
    binary = make_cli(suite.path, resolved_engine(RECENT), spoil="outputs[0] = outputs[0] + 1")
    suite.pytester.makeconftest("")
    suite.pytester.makepyfile(test_net=MODEL)
    options = ("--t2n-reduce=small", "--t2n-offline", f"--t2n-cache-dir={CACHE}")
    result = suite.run(*options, engines=f"path:{binary}", alone=True, modules=FOR_EXPORTS)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*reduced: mismatch at compare*: 1 operator, 1 element, *, oracle tract {RECENT}"])
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
    options = ("--t2n-reduce=small", "--t2n-offline", f"--t2n-cache-dir={CACHE}")
    result = suite.run(*options, engines=RECENT, alone=True, modules=FOR_EXPORTS)
    result.stdout.fnmatch_lines(
        [f"*not reduced: the oracle, definitions, computes what tract {RECENT} does*", "*hint: *--t2n-bisect*"]
    )
