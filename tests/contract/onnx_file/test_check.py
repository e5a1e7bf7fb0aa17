"""`t2n check` of ONNX models in real releases of tract, against onnxruntime and ONNX's own evaluator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import helper, numpy_helper

from pytest_t2n.cli.command import main
from tests.onnx_nets import embedding, linear, lstm, model, saved, tensor
from tests.releases import LINES, NEWEST


def checked(capsys: pytest.CaptureFixture[str], *arguments: str, releases: str = NEWEST) -> list[dict[str, Any]]:
    main(["check", *arguments, "--tract", releases, "--json"])
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("net", [linear(), embedding(), lstm("forward")], ids=["linear", "embedding", "lstm"])
def test_models_that_every_line_computes(
    net: onnx.ModelProto, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes = checked(capsys, str(saved(net, tmp_path / "net.onnx")), releases=",".join(LINES))
    assert [outcome["status"] for outcome in outcomes] == ["pass"] * len(LINES)
    assert all(len(outcome["sizes"]) >= 6 for outcome in outcomes)


def test_the_name_of_a_model_does_not_matter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (outcome,) = checked(capsys, str(saved(linear(), tmp_path / "weights.bin")), "--size", "B=9")
    assert (outcome["status"], outcome["sizes"]) == ("pass", [{"B": 9}])


def test_a_reversed_lstm_is_wrong_in_every_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """tract never reads `direction` of an LSTM that is not bidirectional."""
    outcomes = checked(capsys, str(saved(lstm("reverse"), tmp_path / "net.onnx")), releases=",".join(LINES))
    assert [outcome["status"] for outcome in outcomes] == ["mismatch"] * len(LINES)
    assert all("differ from onnxruntime" in outcome["error"]["message"] for outcome in outcomes)


def test_an_operator_that_the_engine_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = model([helper.make_node("Det", ["x"], ["y"])], [tensor("x", ["B", 3, 3])], [tensor("y", ["B"])])
    (outcome,) = checked(capsys, str(saved(net, tmp_path / "net.onnx")))
    assert (outcome["status"], outcome["stage"]) == ("error", "load")
    assert "Det" in outcome["error"]["message"]


def test_a_folder_of_test_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.random.default_rng(1).normal(size=(7, 5)).astype("f4")
    net = linear()
    weight, bias = (numpy_helper.to_array(stored) for stored in net.graph.initializer)
    path, folder = saved(net, tmp_path / "net.onnx"), tmp_path / "test_data_set_0"
    folder.mkdir()
    (folder / "input_0.pb").write_bytes(numpy_helper.from_array(x).SerializeToString())
    (folder / "output_0.pb").write_bytes(numpy_helper.from_array(x @ weight + bias).SerializeToString())
    (outcome,) = checked(capsys, str(path), "--inputs", str(folder))
    assert outcome["status"] in ("pass", "weak")
    (folder / "output_0.pb").write_bytes(numpy_helper.from_array(x @ weight - bias).SerializeToString())
    (outcome,) = checked(capsys, str(path), "--inputs", str(folder))
    assert outcome["status"] == "mismatch"
    assert "differ from the expected outputs" in outcome["error"]["message"]


def test_external_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(linear(), path, save_as_external_data=True, location="net.data", size_threshold=0)
    (outcome,) = checked(capsys, str(path))
    assert outcome["status"] == "pass"


def test_references_that_differ_make_a_weak_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where a size is scaled down with aligned corners, onnxruntime rounds the size of the output otherwise."""
    node = helper.make_node(
        "Resize", ["x", "", "s"], ["y"], mode="linear", coordinate_transformation_mode="align_corners"
    )
    scales = np.array([1, 1, 0.6, 0.6], "f4")
    net = model([node], [tensor("x", [1, 1, 2, 4])], [tensor("y", [1, 1, 1, 2])], {"s": scales})
    (outcome,) = checked(capsys, str(saved(net, tmp_path / "net.onnx")))
    assert outcome["status"] == "weak"


def test_the_releases_between_which_a_model_ends_differently(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], resolved_engine: Any
) -> None:
    resolved_engine(LINES[-2])
    resolved_engine(NEWEST)
    node = helper.make_node("Gelu", ["x"], ["y"])
    path = saved(model([node], [tensor("x", ["B", 5])], [tensor("y", ["B", 5])], opset=20), tmp_path / "net.onnx")
    main(["bisect-releases", str(path), "--json", "--offline", "--good", NEWEST, "--bad", LINES[-2]])
    endings = json.loads(capsys.readouterr().out)["endings"]
    assert (endings[LINES[-2]], endings[NEWEST]) == ("error at load", "right")


def test_the_first_wrong_node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reverse = lstm("reverse")
    reverse.graph.node.insert(0, helper.make_node("Tanh", ["x"], ["t"]))
    reverse.graph.node[1].input[0] = "t"
    reverse.graph.node[1].output[0], reverse.graph.output[0].name = "h", "y"
    reverse.graph.node.append(helper.make_node("Neg", ["h"], ["y"]))
    (outcome,) = checked(capsys, str(saved(reverse, tmp_path / "net.onnx")), "--bisect")
    assert "first node that the engine computes otherwise than onnxruntime: LSTM `h`" in outcome["error"]["details"]


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["reduce", "net.onnx", "-o", "out", "--engine", "khronos"], "the tools of Khronos read no ONNX files"),
        (["export-tensors", "w.pt", "-o", "w", "--like", "net.onnx"], "is an ONNX model, and this needs an archive"),
        (["export", "net.onnx", "-o", "net.nnef.tgz"], "is an ONNX model, which is not exported"),
        (["check", "net.onnx", "--khronos"], "the tools of Khronos read no ONNX files"),
    ],
)
def test_commands_for_archives_alone(
    command: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    saved(linear(), tmp_path / "net.onnx")
    torch.save({"w": torch.ones(1)}, "w.pt")
    assert main(command) == 1
    assert reason in capsys.readouterr().err
