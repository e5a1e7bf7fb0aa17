"""Commands that take an ONNX model where an archive may stand, in real releases of tract."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from pytest_t2n.cli.command import main
from tests.onnx_nets import linear, lstm, model, saved, tensor
from tests.releases import LINES, NEWEST


@pytest.fixture(autouse=True)
def engines(resolved_engine) -> None:
    """Fetch the engines, since the commands are offline."""
    for release in (LINES[-2], NEWEST):
        resolved_engine(release)


@pytest.mark.parametrize("given", [(), ("--inputs", "x.npz")], ids=["drawn", "given"])
def test_the_time_of_a_model_goes_to_its_nodes(given, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    net = linear()
    net.graph.node[1].name = "bias"
    onnx.save(net, "weights.bin", save_as_external_data=True, location="net.data", size_threshold=0)
    np.savez("x.npz", x=np.ones((400, 5), "f4"))
    assert main(["profile", "weights.bin", "--engine", NEWEST, "--seconds", "0.1", "--offline", "--json", *given]) == 0
    (found,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert {"MatMul"} <= {line["operator"] for line in found["lines"]}
    assert sum(line["share"] for line in found["lines"] if line["name"] in ("m", "bias")) > 0.5


def test_a_bundle_shows_the_failure_in_a_folder_of_its_own(tmp_path, capsys, monkeypatch) -> None:
    made, elsewhere = tmp_path / "made", tmp_path / "elsewhere"
    made.mkdir()
    monkeypatch.chdir(made)
    onnx.save(lstm("reverse"), "weights.bin", save_as_external_data=True, location="net.data", size_threshold=0)
    given = ["weights.bin", "--engine", NEWEST, "--offline", "--format", "tract", "-o", "case"]
    for _ in range(2):  # its own files are replaced
        assert main(["bundle", *given]) == 0
    assert f"replayed in tract {NEWEST}: mismatch at compare" in capsys.readouterr().out
    text = Path("case.issue.md").read_text("utf-8")
    assert f"tract {NEWEST} computes other values for this graph than onnxruntime" in text
    assert 'y = LSTM <direction: string = "reverse", hidden_size: int = 4> (x, W, R, B)' in text
    command = re.search(r"```sh\n(t2n check .*)\n```", text)
    assert command is not None
    made.joinpath("case").rename(elsewhere)
    assert sorted(path.name for path in elsewhere.iterdir()) == ["io.npz", "model.onnx", "net.data", "runme.sh"]
    shutil.rmtree(made)
    monkeypatch.chdir(elsewhere)
    assert main([*shlex.split(command[1])[1:], "--offline", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["status"] == "mismatch"


def test_a_bundle_of_a_refusal_is_right_in_a_release_that_has_the_operator(tmp_path, capsys) -> None:
    node = helper.make_node("Gelu", ["x"], ["y"])
    path = saved(model([node], [tensor("x", ["B", 5])], [tensor("y", ["B", 5])], opset=20), tmp_path / "net.onnx")
    case = ["--engine", LINES[-2], "--offline", "--format", "tract", "-o", str(tmp_path / "case")]
    assert main(["bundle", str(path), *case]) == 0
    said = capsys.readouterr().out
    assert f"replayed in tract {LINES[-2]}: error at load" in said
    assert ": right" in said
    assert main(["bundle", str(tmp_path / "case"), *case[:-1], str(tmp_path / "again")]) == 0  # a case is an input, too


@pytest.mark.parametrize(
    "command",
    [
        ["profile"],
        ["bisect-releases"],
        ["bundle", "--format", "tract", "-o", "out"],
        ["reduce", "-o", "out"],
        ["check"],
    ],
    ids=lambda command: command[0],
)
def test_the_missing_extra_is_named(command, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    saved(linear(), tmp_path / "net.onnx")
    monkeypatch.setattr("t2n_core.extras.find_spec", lambda package: None)
    engine = ["--tract", NEWEST] if command == ["check"] else [] if "bisect" in command[0] else ["--engine", NEWEST]
    assert main([*command, "net.onnx", "--offline", *engine]) == 1
    assert capsys.readouterr().err.endswith("an ONNX file needs onnx: pip install 'pytest-t2n[onnx]'\n")
