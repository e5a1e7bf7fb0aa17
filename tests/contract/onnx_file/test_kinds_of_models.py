"""Models that few engines read: each ends `t2n check` with a verdict or one sentence, never with a traceback."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from pytest_t2n.cli.command import main
from tests.onnx_nets import FLOAT, INT64, linear, model, saved, tensor
from tests.releases import NEWEST

X, Y = tensor("x", ["B", 3]), tensor("y", ["B", 3])


def function() -> onnx.ModelProto:
    net = model([helper.make_node("F", ["x"], ["y"], domain="own")], [X], [Y])
    tanh, opsets = [helper.make_node("Tanh", ["a"], ["r"])], [helper.make_opsetid("", 17)]
    net.functions.append(helper.make_function("own", "F", ["a"], ["r"], tanh, opsets))
    net.opset_import.add(domain="own", version=1)
    return net


def sequence() -> onnx.ModelProto:
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "x"], ["s"]),
        helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0),
    ]
    return model(nodes, [X], [tensor("y", [None, 3])])


def strings() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Cast", ["x"], ["s"], to=TensorProto.STRING),
        helper.make_node("StringNormalizer", ["s"], ["n"]),
        helper.make_node("Cast", ["n"], ["y"], to=FLOAT),
    ]
    return model(nodes, [tensor("x", ["B"])], [tensor("y", ["B"])])


def branch() -> onnx.ModelProto:
    branches = {
        f"{name}_branch": helper.make_graph([helper.make_node(kind, ["x"], [name])], name, [], [tensor(name, ["B", 3])])
        for name, kind in (("then", "Tanh"), ("else", "Relu"))
    }
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["t"], keepdims=0),
        helper.make_node("Greater", ["t", "z"], ["c"]),
        helper.make_node("If", ["c"], ["y"], **branches),
    ]
    return model(nodes, [X], [Y], {"z": np.float32(0)})


def loop() -> onnx.ModelProto:
    steps = [helper.make_node("Identity", ["go"], ["still"]), helper.make_node("Tanh", ["v"], ["w"])]
    inputs = [tensor("i", [], INT64), tensor("go", [], TensorProto.BOOL), tensor("v", ["B", 3])]
    body = helper.make_graph(steps, "body", inputs, [tensor("still", [], TensorProto.BOOL), tensor("w", ["B", 3])])
    node = helper.make_node("Loop", ["n", "go", "x"], ["y"], body=body)
    return model([node], [X], [Y], {"n": np.array(3), "go": np.array(True)})


def short() -> onnx.ModelProto:
    net = linear()
    net.graph.initializer[0].raw_data = b"123"
    return net


def unknown() -> onnx.ModelProto:
    net = linear()
    net.graph.node[0].op_type = "\x1b[31mUnknown"
    return net


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (function, "node `y` (F): the operator is a function of the model, and this release reads none"),
        (sequence, "node `s` (SequenceConstruct): tract has no sequences of tensors"),
        (strings, "node `n` (StringNormalizer): tract has no sequences of tensors, strings"),
        (branch, ""),
        (loop, "node `y` (Loop): this release does not implement the operator"),
        (short, "Raw tensor data length (3) does not match shape [5, 3]"),
        (unknown, "this release does not implement the operator"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_model_ends_the_check_with_a_sentence(make, sentence, tmp_path, capsys) -> None:
    assert main(["check", str(saved(make(), tmp_path / "net.onnx")), "--tract", NEWEST]) == int(bool(sentence))
    stdout = capsys.readouterr().out
    assert sentence in stdout
    assert "\x1b" not in stdout


def test_a_repair_writes_the_nodes_of_functions(tmp_path, capsys) -> None:
    path = saved(function(), tmp_path / "net.onnx")
    repaired = ["--repair", "-o", str(tmp_path / "better.onnx")]
    assert main(["check", str(path), "--tract", NEWEST, *repaired]) == 0
    assert "better.onnx: fold constants" in capsys.readouterr().out  # onnxruntime replaces them, too
