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
    (profile,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert {"MatMul"} <= {line["operator"] for line in profile["lines"]}
    assert sum(line["share"] for line in profile["lines"] if line["name"] in ("m", "bias")) > 0.5


def test_a_profile_says_what_helps_where_the_engine_refuses_the_model(tmp_path, capsys) -> None:
    path = str(saved(chain("Gelu", 20), tmp_path / "net.onnx"))
    assert main(["profile", path, "--engine", LINES[-2], "--offline"]) == 1
    assert "hint: node `b` (Gelu): this release does not implement the operator" in capsys.readouterr().err


def test_a_bundle_shows_the_failure_in_a_folder_of_its_own(tmp_path, capsys, monkeypatch) -> None:
    made, elsewhere = tmp_path / "made", tmp_path / "elsewhere"
    made.mkdir()
    monkeypatch.chdir(made)
    onnx.save(lstm("reverse"), "weights.bin", save_as_external_data=True, location="net.data", size_threshold=0)
    arguments = ["weights.bin", "--engine", NEWEST, "--offline", "--format", "tract", "-o", "case"]
    for _ in range(2):  # its own files are replaced
        assert main(["bundle", *arguments]) == 0
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
    path = saved(chain("Gelu", 20), tmp_path / "net.onnx")
    case = ["--engine", LINES[-2], "--offline", "--format", "tract", "-o", str(tmp_path / "case")]
    assert main(["bundle", str(path), *case]) == 0
    stdout = capsys.readouterr().out
    assert f"replayed in tract {LINES[-2]}: error at load" in stdout
    assert ": right" in stdout
    assert main(["bundle", str(tmp_path / "case"), *case[:-1], str(tmp_path / "again")]) == 0  # a case is an input, too


def deep() -> onnx.ModelProto:
    """Return a model in which only the LSTM is computed wrongly, far from inputs and outputs."""
    random = np.random.default_rng(0)
    constants = {"w": random.normal(size=(7, 3)).astype("f4"), "axis": np.array([1])}
    net = lstm("reverse")
    net.graph.node[0].input[0] = "t"
    net.graph.node[0].output[0] = "h"
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Tanh", ["m"], ["t"]),
        net.graph.node[0],
        helper.make_node("Squeeze", ["h", "axis"], ["s"]),
        helper.make_node("Exp", ["s"], ["y"]),
    ]
    full_model = model(nodes, [tensor("x", ["T", 2, 7])], [tensor("y", ["T", 2, 4])], constants)
    full_model.graph.initializer.extend(net.graph.initializer)
    return full_model


def chain(operator: str, opset: int) -> onnx.ModelProto:
    """Return a model of three nodes, of which the operator is the second one."""
    names = (("Tanh", "x", "a"), (operator, "a", "b"), ("Neg", "b", "y"))
    nodes = [helper.make_node(kind, [x], [y]) for kind, x, y in names]
    return model(nodes, [tensor("x", ["B", 5])], [tensor("y", ["B", 5])], opset=opset)


def declared() -> onnx.ModelProto:
    """Return a model with a declaration that releases before 0.23 cannot parse, as torch.onnx writes them."""
    net = chain("Exp", 17)
    net.graph.value_info.append(tensor("b", ["Min(64, B)", 5]))
    return net


@pytest.mark.parametrize(
    ("net", "release", "failure", "operators", "status"),
    [
        (deep(), NEWEST, "mismatch at compare, of `LSTM`", ["LSTM"], "mismatch"),
        (chain("Gelu", 20), LINES[-2], "error at load: Operator can not be made", ["Gelu"], "error"),
        (declared(), LINES[-2], "error at load: Failed to parse", ["Exp", "Neg"], "error"),
    ],
    ids=["wrong", "refused", "declared"],
)
def test_a_model_is_reduced_to_the_nodes_that_fail(
    net, release, failure, operators, status, tmp_path, capsys, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(net, "weights.bin", save_as_external_data=True, location="net.data", size_threshold=64)
    assert main(["reduce", "weights.bin", "--engine", release, "--offline", "-o", "small"]) == 0
    stdout = capsys.readouterr().out
    assert failure in stdout
    assert "oracle onnxruntime" in stdout
    assert sorted(path.name for path in Path("small").iterdir()) == ["io.npz", "model.onnx"]
    assert [node.op_type for node in onnx.load("small/model.onnx").graph.node] == operators
    command = re.search(r"^see it: (.*)$", stdout, re.MULTILINE)
    assert command is not None
    Path("weights.bin").unlink()
    assert main([*shlex.split(command[1])[1:], "--offline", "--json"]) == 1
    (outcome,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert outcome["status"] == status
    assert main(["reduce", "small", "--engine", release, "--offline", "-o", "small"]) == 0  # it can go on from there


def test_a_model_that_is_right_is_not_reduced(tmp_path, capsys) -> None:
    path = str(saved(linear(), tmp_path / "net.onnx"))
    assert main(["reduce", path, "--engine", NEWEST, "--offline", "-o", str(tmp_path / "small")]) == 1
    assert f"it does not fail in tract {NEWEST}" in capsys.readouterr().err
    options = ["--oracle", "definitions", "--engine", NEWEST, "--offline", "-o", str(tmp_path / "small")]
    assert main(["reduce", str(saved(lstm("reverse"), tmp_path / "net.onnx")), *options]) == 1
    assert "--oracle definitions is for archives" in capsys.readouterr().err


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
