"""`t2n check model.onnx --repair` in real releases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from pytest_t2n.cli.command import main
from tests.onnx_nets import FLOAT, INT64, attention_keys, linear, lstm, model, saved, tensor
from tests.releases import LINES, NEWEST

LATE = LINES[-3]
"""A release that lacks Gelu and Mish."""


def repaired(
    capsys: pytest.CaptureFixture[str], path: Path, target: Path, release: str = LATE
) -> tuple[int, list[dict[str, Any]]]:
    status = main(["check", str(path), "--tract", release, "--json", "--repair", "-o", str(target)])
    return status, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_function_of_the_standard_becomes_its_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node = helper.make_node("Gelu", ["x"], ["y"])
    path = saved(model([node], [tensor("x", ["B", 5])], [tensor("y", ["B", 5])], opset=20), tmp_path / "net.onnx")
    status, (before, after) = repaired(capsys, path, tmp_path / "better.onnx")
    assert (before["status"], before["facts"]["refusal"], before["error"]["op"]) == ("error", "operator", "Gelu")
    assert (status, after["status"], after["repairs"]) == (0, "pass", ["inline functions"])
    assert "Gelu" not in {graph_node.op_type for graph_node in onnx.load(tmp_path / "better.onnx").graph.node}


def test_a_contradicting_declared_shape_is_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = linear()
    net.graph.value_info.append(tensor("m", ["B", 4]))
    status, (before, after) = repaired(capsys, saved(net, tmp_path / "net.onnx"), tmp_path / "better.onnx", NEWEST)
    assert before["facts"]["refusal"] == "shape"
    assert (status, after["repairs"]) == (0, ["remove declared shapes"])


def test_positions_that_are_counted_by_a_mask(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """torch.onnx writes the positions of language models so: the engine takes an int64 that is cast for a size."""
    nodes = [
        helper.make_node("Equal", ["ids", "padding"], ["none"]),
        helper.make_node("Not", ["none"], ["some"]),
        helper.make_node("Cast", ["some"], ["wide"], to=INT64),
        helper.make_node("CumSum", ["wide", "axis"], ["positions"]),
        helper.make_node("Cast", ["positions"], ["y"], to=FLOAT),
    ]
    ports = [tensor("ids", ["B", "T"], INT64)], [tensor("y", ["B", "T"])]
    net = model(nodes, *ports, {"padding": np.array(1), "axis": np.array(1)})
    status, (before, after) = repaired(capsys, saved(net, tmp_path / "net.onnx"), tmp_path / "better.onnx", NEWEST)
    assert (before["facts"]["refusal"], before["error"]["op"]) == ("shape arithmetic", "CumSum")
    assert (status, after["status"], after["repairs"]) == (0, "pass", ["count in 32 bits"])


def test_an_image_that_is_scaled_to_one_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["batch"], end=2),
        helper.make_node("Concat", ["batch", "size"], ["sizes"], axis=0),
        helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode="linear"),
    ]
    net = model(nodes, [tensor("x", ["B", 2, 4, 5])], [tensor("y", ["B", 2, 8, 10])], {"size": np.array([8, 10])})
    status, (before, after) = repaired(capsys, saved(net, tmp_path / "net.onnx"), tmp_path / "better.onnx", NEWEST)
    assert (before["facts"]["refusal"], before["error"]["op"]) == ("shape arithmetic", "Resize")
    assert (status, after["status"], after["repairs"]) == (0, "pass", ["scale by constants"])


def test_keys_of_attention(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(attention_keys(), tmp_path / "net.onnx")
    status, (before, after) = repaired(capsys, path, tmp_path / "better.onnx", NEWEST)
    assert (before["facts"]["refusal"], before["error"]["op"]) == ("shape arithmetic", "Reshape")
    assert (status, after["status"], after["repairs"]) == (0, "pass", ["transpose in four dimensions"])


def test_nothing_is_written_where_nothing_helps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The engine computes a reversed LSTM wrongly in any form of the file."""
    status, (before, after) = repaired(capsys, saved(lstm("reverse"), tmp_path / "net.onnx"), tmp_path / "better.onnx")
    assert (status, before["status"], after["status"], after["repairs"]) == (1, "mismatch", "mismatch", [])
    assert not (tmp_path / "better.onnx").exists()


def test_what_no_repair_mends_is_not_advised_to_be_repaired(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = model([helper.make_node("Unique", ["x"], ["y"])], [tensor("x", [7])], [tensor("y", None)])
    _, (before, after) = repaired(capsys, saved(net, tmp_path / "net.onnx"), tmp_path / "better.onnx")
    assert "--repair" in before["error"]["hint"]
    assert "--repair" not in after["error"]["hint"]


def test_a_file_that_passes_is_not_written_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, target = saved(linear(), tmp_path / "net.onnx"), tmp_path / "better.onnx"
    assert main(["check", str(path), "--tract", NEWEST, "--repair", "-o", str(target)]) == 0
    assert f"nothing to repair: {target} is not written" in capsys.readouterr().err
    assert not target.exists()


def test_a_repair_that_changes_outputs_is_not_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from t2n_core.onnx_file import repaired as search

    def spoil(path: Path, job: Any, *_: Any) -> None:
        net = onnx.load(path)
        node = next(candidate for candidate in net.graph.node if candidate.op_type == "Gelu")
        node.CopyFrom(helper.make_node("Relu", node.input, node.output))
        Path(job["target"]).write_bytes(net.SerializeToString())
        _[-1](type("Frame", (), {"header": {"changed": True}}))

    monkeypatch.setattr(search, "run_job", spoil)
    node = helper.make_node("Gelu", ["x"], ["y"])
    path = saved(model([node], [tensor("x", ["B", 5])], [tensor("y", ["B", 5])], opset=20), tmp_path / "net.onnx")
    status, (_, after) = repaired(capsys, path, tmp_path / "better.onnx")
    assert (status, after["status"], after["repairs"]) == (1, "error", [])
    assert not (tmp_path / "better.onnx").exists()


@pytest.mark.parametrize("arguments", [["--repair"], ["-o", "x.onnx"]])
def test_options_that_belong_together(arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(saved(linear(), tmp_path / "net.onnx")), "--tract", NEWEST, *arguments]) == 1
    assert "--repair writes the model to the file of -o" in capsys.readouterr().err
