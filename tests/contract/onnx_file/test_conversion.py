"""`t2n convert model.onnx`: archives that the engine writes of ONNX models, proven against onnxruntime."""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from pytest_t2n.cli.command import main
from tests.onnx_nets import embedding, linear, lstm, model, saved, tensor
from tests.releases import LINES, NEWEST


def converted(path: Path, target: Path, *releases: str) -> int:
    return main(["convert", str(path), "-o", str(target), "--tract", ",".join(releases)])


@pytest.mark.parametrize("net", [linear(), embedding()], ids=["linear", "embedding"])
@pytest.mark.parametrize("release", [LINES[-3], NEWEST])
def test_the_archive_computes_what_the_model_does(net, release, tmp_path, capsys) -> None:
    target = tmp_path / "net.nnef.tgz"
    assert converted(saved(net, tmp_path / "net.onnx"), target, release) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [(line[2], line[3]) for line in lines] == [("net.onnx", "pass"), ("net.nnef.tgz", "pass")]
    with tarfile.open(target) as archive:
        graph = archive.extractfile("graph.nnef")
        assert graph is not None
        assert "B" in graph.read().decode()  # the dynamic batch
    assert main(["check", str(target), "--tract", release]) == 0  # by the definitions of its operators


def test_an_archive_for_several_releases(tmp_path, capsys) -> None:
    target = tmp_path / "net.nnef.tgz"
    assert converted(saved(linear(), tmp_path / "net.onnx"), target, LINES[-2], NEWEST) == 0
    assert capsys.readouterr().out.count("pass") == 3


def test_inputs_of_the_model_zoo(tmp_path, capsys) -> None:
    (tmp_path / "input_0.pb").write_bytes(numpy_helper.from_array(np.ones((6, 5), "f4")).SerializeToString())
    arguments = ["-o", str(tmp_path / "net.nnef.tgz"), "--inputs", str(tmp_path), "--tract", NEWEST]
    assert main(["convert", str(saved(linear(), tmp_path / "net.onnx")), *arguments]) == 0
    (tmp_path / "input_1.pb").touch()
    assert main(["convert", str(tmp_path / "net.onnx"), *arguments]) == 1
    assert "has 2 files input_N.pb, and the model has 1 inputs" in capsys.readouterr().err


def test_a_model_that_the_engine_computes_wrongly_is_not_converted(tmp_path, capsys) -> None:
    target = tmp_path / "net.nnef.tgz"
    assert converted(saved(lstm("reverse"), tmp_path / "net.onnx"), target, NEWEST) == 1
    assert "differ from onnxruntime" in capsys.readouterr().out
    assert not target.exists()


def test_gelu_is_written_by_its_parts(tmp_path, capsys) -> None:
    """The engine recognises an exact GELU, and its writer does not know it."""
    nodes = [helper.make_node("Gelu", ["x"], ["h"]), helper.make_node("Erf", ["h"], ["y"])]
    net = model(nodes, [tensor("x", ["B", 5])], [tensor("y", ["B", 5])], opset=20)
    target = tmp_path / "net.nnef.tgz"
    assert converted(saved(net, tmp_path / "net.onnx"), target, NEWEST) == 0
    assert [line.split()[3] for line in capsys.readouterr().out.splitlines()[1:]] == ["pass", "pass"]


@pytest.mark.parametrize("dtype", [TensorProto.INT64, TensorProto.INT8, TensorProto.UINT16])
@pytest.mark.parametrize("fmod", [0, 1])
def test_remainders_of_integers_are_divisions(dtype, fmod, tmp_path, capsys) -> None:
    node = helper.make_node("Mod", ["x", "z"], ["y"], fmod=fmod)
    net = model([node], [tensor("x", ["B", 9], dtype), tensor("z", [9], dtype)], [tensor("y", ["B", 9], dtype)])
    path, target = saved(net, tmp_path / "net.onnx"), tmp_path / "net.nnef.tgz"
    numbers = np.array([[-7, -6, -1, 0, 1, 5, 6, 7, 100], [3, -3, 5, 2, 9, -4, 8, 0, -50]])
    divisors = np.array([3, -3, 2, 5, -7, 4, 3, -2, 9])
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    if kind.kind == "u":
        numbers, divisors = np.abs(numbers), np.abs(divisors)
    np.savez(tmp_path / "x.npz", x=numbers.astype(kind), z=divisors.astype(kind))
    words = ["convert", str(path), "-o", str(target), "--inputs", str(tmp_path / "x.npz"), "--tract", NEWEST]
    assert main(words) == 0
    assert [line.split()[3] for line in capsys.readouterr().out.splitlines()[1:]] == ["weak", "weak"]


def test_an_operator_that_the_engine_cannot_write(tmp_path, capsys) -> None:
    node = helper.make_node("Mod", ["x", "z"], ["y"], fmod=1)
    net = model([node], [tensor("x", ["B", 3]), tensor("z", ["B", 3])], [tensor("y", ["B", 3])])
    target = tmp_path / "net.nnef.tgz"
    assert converted(saved(net, tmp_path / "net.onnx"), target, NEWEST) == 1
    assert "cannot write" in capsys.readouterr().err
    assert not target.exists()


@pytest.mark.parametrize("name", ["net.nnef.tgz", "net"])
def test_an_archive_that_the_engine_writes_wrongly_is_removed(name, tmp_path, capsys) -> None:
    """The writer loses `ceil_mode` of a pool, and with it the last window."""
    node = helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
    net = model([node], [tensor("x", [1, 2, 5, 7])], [tensor("y", [1, 2, 3, 4])])
    target = tmp_path / name
    assert converted(saved(net, tmp_path / "net.onnx"), target, NEWEST) == 1
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[1:3]]
    assert [line[3] for line in lines] == ["pass", "mismatch"]
    assert not target.exists()


def test_only_onnx_models_are_converted(tmp_path, capsys) -> None:
    (tmp_path / "graph.nnef").write_text("version 1.0;\n")
    assert converted(tmp_path, tmp_path / "net.nnef.tgz", NEWEST) == 1
    assert "is not an ONNX model" in capsys.readouterr().err
