"""`t2n export` as a user types it, with archives that are proven in real engines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from pytest_t2n.cli import main
from tests.releases import NEWEST

NETS = """
import torch
from torch import nn

class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.rnn = nn.GRU(8, 6, batch_first=True)
        self.out = nn.Linear(6, 3)

    def forward(self, frames):
        return self.out(self.rnn(frames)[0])

class Cached(nn.Module):
    def forward(self, x, cache):
        whole = torch.cat([cache, x], 1)
        return whole.sum(1), whole

class Sized(nn.Module):
    def __init__(self, size):
        super().__init__()

def make():
    return Tagger(), {"frames": torch.randn(2, 9, 8)}

def cached():
    return Cached(), {"x": torch.randn(2, 3, 4), "cache": torch.randn(2, 5, 4)}

def stream():
    return nn.Conv1d(4, 2, 3, stride=2), {"input": torch.randn(1, 4, 50)}

def zeta():
    class Net(nn.Module):
        def forward(self, x):
            return torch.special.zeta(x, x + 4)
    return Net(), {"x": torch.tensor([[6, 4, 9]])}

net = Tagger()
number = 3
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of a user, with a file of nets."""
    (tmp_path / "user_nets.py").write_text(NETS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("user_nets", None)


def export(*words: str) -> int:
    return main(["export", *words, "--tract", NEWEST, "--offline"])


def test_an_archive_with_state_has_a_manifest(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--option", "state={'cache': 1}", "--option", "specific_properties={'sample_rate': '16000'}"]
    assert export("user_nets:cached", "-o", "net.nnef.tgz", "--dynamic", "x:1=T", "--output-names", "y", *more) == 0
    assert "net.manifest.json: state, inputs and outputs, for the program that runs it" in capsys.readouterr().out
    manifest = json.loads((folder / "net.manifest.json").read_text())
    assert manifest["format"] == 1
    assert (manifest["archive"], manifest["tract"], manifest["sizes"]) == ("net.nnef.tgz", NEWEST, "P >= 0, T >= 1")
    assert manifest["inputs"] == {"x": ["2", "T", "4"], "in_cache": ["2", "P", "4"]}
    assert list(manifest["outputs"]) == ["y", "out_cache"]
    assert set(manifest["dtypes"].values()) == {"float32"}
    assert manifest["properties"] == {"sample_rate": "16000"}
    pair = {"input": "in_cache", "output": "out_cache", "grows": [1], "initial": [2, 0, 4], "dtype": "float32"}
    assert manifest["state"] == [pair]
    assert "stream" not in manifest


@pytest.mark.parametrize("pulsed", [True, False])
def test_a_stream_has_a_manifest(pulsed: bool, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--option", "pulse=8", "--option", f"pulsed_archive={pulsed}", "--output-names", "y", "--json"]
    assert export("user_nets:stream", "-o", "net", "--dynamic", "input:2=T", *more) == 0
    assert json.loads(capsys.readouterr().out)["manifest"] == "net.manifest.json"
    manifest = json.loads((folder / "net.manifest.json").read_text())
    of_archive = {
        "archive": "net.pulsed",
        "symbol": "T",
        "inputs": {"input": {"axis": 2}},
        "outputs": {"y": {"axis": 2, "delay": 1}},
    }
    assert manifest["stream"] == {"pulse": 8, **(of_archive if pulsed else {})}
    assert manifest["state"] == []


def test_a_function_that_returns_model_and_inputs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert export("user_nets:make", "-o", "net.nnef.tgz", "--dynamic", "frames:1=T:2:40", "--output-names", "tags") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "net.nnef.tgz: frames -> tags",
        "holds for 2 <= T <= 40",
        f"proven in tract {NEWEST} at `approximate`",
    ]
    assert not list(folder.glob("*.json"))
    assert (folder / "net.nnef.tgz").is_file()


def test_what_is_written_is_what_check_accepts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert export("user_nets.py:net", "-o", "net.nnef.tgz", "--inputs", example(folder), "--dynamic", "frames:1=T") == 0
    net = sys.modules["user_nets"].net
    for name, size in (("a", 5), ("b", 5), ("c", 12)):
        frames = torch.randn(2, size, 8)
        np.savez(folder / f"{name}.x.npz", frames=frames.numpy())
        np.savez(folder / f"{name}.y.npz", output=net(frames).detach().numpy())
    inputs, expected = [[f"{name}.{kind}.npz" for name in "abc"] for kind in "xy"]
    arguments = ["check", "net.nnef.tgz", "--inputs", *inputs, "--tract", NEWEST, "--offline", "--expected"]
    capsys.readouterr()
    assert main([*arguments, *expected, "--strict"]) == 0
    assert " pass " in capsys.readouterr().out
    assert main([*arguments, "b.y.npz", "a.y.npz", "c.y.npz"]) == 1
    wrong = capsys.readouterr().out
    assert f"mismatch at stage `compare` in tract {NEWEST} on the path `declutter`: 1 of 1 outputs differ" in wrong
    assert main([*arguments[:-1], "--json", "--expected", *expected]) == 0
    assert '"status": "pass"' in capsys.readouterr().out


def test_halves_are_proven_as_such(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert export("user_nets:make", "-o", "net.nnef.tgz", "--option", "precision=auto") == 0
    captured = capsys.readouterr()
    assert f"proven in tract {NEWEST} at `float16`" in captured.out
    assert "precision='auto': " in captured.err
    assert (folder / "net.nnef.tgz.precision.toml").is_file()


def test_one_sample_proves_little(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert export("user_nets:Tagger", "-o", "net", "--inputs", example(folder), "--no-check") == 0
    assert "not checked" in capsys.readouterr().out
    net = sys.modules["user_nets"].Tagger()
    frames = torch.from_numpy(np.load(folder / "example.npz")["frames"])
    np.savez(folder / "y.npz", net(frames).detach().numpy())  # by place
    words = ["check", "net", "--inputs", "example.npz", "--expected", "y.npz", "--tract", NEWEST, "--offline"]
    assert main(words) == 0
    assert " weak " in capsys.readouterr().out
    assert main([*words, "--strict"]) == 1


def test_a_weak_pass_is_not_called_a_proof(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(folder / "x.npz", input=np.ones((2, 3), np.float32))
    (folder / "user_nets.py").write_text(NETS + "\nflat = nn.Hardtanh(5.0, 6.0)\n")
    assert export("user_nets:flat", "-o", "flat.nnef.tgz", "--inputs", "x.npz") == 0
    stdout = capsys.readouterr().out
    assert f"passes in tract {NEWEST} at `approximate`, and 1 of 1 outputs prove little" in stdout
    assert "proven" not in stdout


def test_saved_programs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = nn.Sequential(nn.Linear(8, 4), nn.Tanh()).eval()
    frames = torch.randn(3, 8)
    torch.export.save(torch.export.export(net, (frames,)), folder / "net.pt2")
    torch.jit.trace(net, frames).save(str(folder / "net.pt"))
    assert export("net.pt2", "-o", "a.nnef.tgz") == 0
    np.savez(folder / "x.npz", input=frames.numpy())
    assert export("net.pt", "-o", "b.nnef.tgz", "--inputs", "x.npz", "--option", "weights=q4_0") == 0
    assert "weights had no effect" in capsys.readouterr().err


def example(folder: Path) -> str:
    np.savez(folder / "example.npz", frames=np.random.default_rng(4).standard_normal((2, 9, 8), np.float32))
    return "example.npz"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["user_nets"], "user_nets is neither MODULE:CALLABLE nor a file"),
        (["nowhere:make"], "there is no module nowhere"),
        (["nowhere.py:make"], "there is no file nowhere.py"),
        (["nowhere.pt2"], "there is no file nowhere.pt2"),
        (["user_nets:nothing"], "user_nets has no `nothing`"),
        (["user_nets:Sized"], "user_nets:Sized needs arguments: size"),
        (["user_nets:net"], "user_nets:net gives a model without inputs"),
        (["user_nets:number", "--inputs", "example.npz"], "the model must be a torch.nn.Module, not int"),
        (["user_nets:make", "--dynamic", "frames=T"], "--dynamic=frames=T: this is not INPUT:AXIS=NAME"),
        (
            ["user_nets:make", "--dynamic", "audio:1=T"],
            "dynamic_axes names `audio`; the inputs are frames, the outputs output",
        ),
        (["user_nets:make", "--option", "capure=trace"], "there is no option `capure` of an export"),
        (["user_nets:make", "--option", "nothing"], "--option=nothing: this is not NAME=VALUE"),
        (["user_nets:make", "--tolerance", "good"], "'good' is not a tolerance level"),
        (["user_nets:make", "--inputs", "none.npz"], "none.npz cannot be read as .npz"),
        (["user_nets:zeta"], "no rule for aten::special_zeta"),
    ],
    ids=lambda value: "_".join(value)[:40] if isinstance(value, list) else "",
)
def test_what_is_wrong_is_told(
    words: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example(folder)
    assert export(*words, "-o", "net.nnef.tgz") == 1
    out, err = capsys.readouterr()
    assert err.startswith("error: ")
    assert message in err
    assert out == ""
    assert not (folder / "net.nnef.tgz").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.tgz", "--inputs", "example.npz", "--expected", "example.npz"], "there is no file none.tgz"),
        (
            ["user_nets.py", "--inputs", "example.npz", "--expected", "example.npz"],
            "user_nets.py is neither an NNEF archive nor an ONNX model",
        ),
        (["net", "--inputs", "x.npy", "--expected", "example.npz"], "x.npy is one array without a name"),
        (
            ["net", "--inputs", "example.npz", "--expected", "example.npz"],
            "example.npz has no y; the file's outputs are y",
        ),
        (["net", "--inputs", "example.npz", "a.npz", "--expected", "a.npz"], "2 files of --inputs and 1 of --expected"),
        (["net", "--inputs", "a.npz", "--expected", "a.npz"], "name engines with --tract or --khronos"),
        (["net", "--inputs", "a.npz", "--expected", "a.npz", "--tract", "9.9", "--offline"], "--tract=9.9: no release"),
    ],
    ids=lambda value: "_".join(value)[:40] if isinstance(value, list) else "",
)
def test_what_is_wrong_with_a_check(
    words: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "net").mkdir()
    (folder / "net" / "graph.nnef").write_text("version 1.0;\n\ngraph g(frames) -> (y)\n{\n}\n")
    np.save(folder / "x.npy", np.zeros(2))
    np.savez(folder / "a.npz", np.zeros(2))
    example(folder)
    assert main(["check", *words]) == 1
    assert message in capsys.readouterr().err


def test_wrong_words_are_2(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["export"], ["check", "net", "--timeout", "-1"], ["doctor", "--nothing"]):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 2
    assert "'-1' is not a positive number of seconds" in capsys.readouterr().err


MARKED = """
import pytest
import torch
from torch import nn

pytestmark = pytest.mark.nnef_export(dynamic_axes={"frames": {1: "T"}}, tolerance="close")

@pytest.mark.nnef_export(target="tract", output_names=["scores"])
def test_tagger():
    return nn.Linear(8, 3), {"input": torch.randn(2, 9, 8)}

@pytest.mark.nnef_export(dynamic_axes={"input": {1: "T"}}, output_names=["scores"])
def test_dynamic():
    return nn.ReLU(), {"input": torch.randn(2, 9, 8)}

@pytest.mark.nnef_export(dynamic_axes=None, atol=1e-3)
def test_judged():
    return nn.Linear(8, 3), {"input": torch.randn(2, 9, 8)}

@pytest.mark.nnef_generate
def test_tokens():
    return nn.Linear(8, 3)

@pytest.mark.nnef_export(dynamic_axes={"input": {0: "B"}})
class TestNets:
    def test_method(self):
        return self.net(), {"input": torch.randn(2, 9, 8)}

    def net(self):
        return nn.ReLU()
"""


def test_the_marker_of_a_test_counts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "marked_nets.py").write_text(MARKED)
    assert export("marked_nets.py:test_dynamic", "-o", "out.tar") == 0
    printed = capsys.readouterr().out
    assert "input -> scores" in printed
    assert "holds for T >= 1" in printed
    assert "at `close`" in printed
    assert export("marked_nets.py:test_dynamic", "-o", "out.tar", "--dynamic", "input:0=B", "--tolerance", "very") == 0
    printed = capsys.readouterr().out
    assert "holds for B >= 1" in printed
    assert "at `very`" in printed
    assert export("marked_nets.py:test_tagger", "-o", "out.tar") == 1
    assert "frames" in capsys.readouterr().err  # the axes of the module's marker
    assert export("marked_nets.py:test_judged", "-o", "out.tar") == 1
    stderr = capsys.readouterr().err
    assert "judges by atol, and `t2n export` by one level" in stderr
    assert "give --no-check: the test judges" in stderr
    assert export("marked_nets.py:test_judged", "-o", "out.tar", "--no-check") == 0
    assert "not checked" in capsys.readouterr().out
    assert export("marked_nets.py:test_tokens", "-o", "out.tar") == 1
    assert "export-llm" in capsys.readouterr().err
    sys.modules.pop("marked_nets", None)


IMPORTING = """
from audio import make
from {sibling} import NAME

def test_net():
    return make()
"""


@pytest.mark.parametrize("in_package", [False, True])
def test_a_test_imports_as_in_pytest(
    in_package: bool, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the folders of `pythonpath`, and relative to its package."""
    for name in ("audio", "helper", "user_tests", "user_tests.helper", "user_tests.test_net", "test_net"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    (folder / "user_nets.py").rename(folder / "audio.py")
    tests = folder / "user_tests"
    tests.mkdir()
    (tests / "test_net.py").write_text(IMPORTING.format(sibling=".helper" if in_package else "helper"))
    (tests / "helper.py").write_text("NAME = 'net'\n")
    if in_package:
        (tests / "__init__.py").write_text("")
    words = "user_tests/test_net.py::test_net", "-o", "net.nnef.tgz"
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path not in ("", str(folder))])
    if not in_package:
        assert export(*words) == 1
        error = capsys.readouterr().err
        assert "user_tests/test_net.py imports the module `audio`, which is not found" in error
        assert "PYTHONPATH=." in error
        assert len(error.splitlines()) <= 3
    (folder / "pyproject.toml").write_text("[tool.pytest.ini_options]\npythonpath = ['.']\n")
    assert export(*words) == 0, capsys.readouterr().err


def test_the_node_id_of_a_test_names_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "marked_nets.py").write_text(MARKED)
    assert export("marked_nets.py::test_dynamic", "-o", "out.tar") == 0
    assert "holds for T >= 1" in capsys.readouterr().out
    assert export("marked_nets.py::TestNets::test_method", "-o", "out.tar") == 0
    assert "holds for B >= 1" in capsys.readouterr().out
    assert export(f"marked_nets.py::test_dynamic[tract-{NEWEST}]", "-o", "out.tar") == 1
    assert "is one cell of a test" in capsys.readouterr().err
    sys.modules.pop("marked_nets", None)
