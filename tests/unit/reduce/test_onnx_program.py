"""ONNX models as candidates of a reduction."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from t2n_core.nnef.reading.binding import Signatures
from t2n_core.reduce.onnx_program import OnnxProgram
from tests.onnx_nets import linear, model, saved, tensor

SIGNATURES = Signatures.of("tract")
X = np.arange(10, dtype=np.float32).reshape(2, 5)


def program_of(net: onnx.ModelProto, path: Path, *inputs: np.ndarray) -> OnnxProgram:
    return OnnxProgram.of_file(saved(net, path), inputs, SIGNATURES)


def test_a_program_is_the_model_that_was_read(tmp_path: Path) -> None:
    net = linear()
    program = program_of(net, tmp_path / "net.onnx", X)
    assert (program.operators, program.elements, program.results()) == (2, 10 + 15 + 3, ["m", "y"])
    again = onnx.load(program.write(tmp_path / "again"))
    assert again.opset_import == net.opset_import
    assert [dim.dim_param or dim.dim_value for dim in again.graph.input[0].type.tensor_type.shape.dim] == ["B", 5]
    (expected,), (actual,) = (ReferenceEvaluator(proto).run(None, {"x": X}) for proto in (net, again))
    np.testing.assert_array_equal(expected, actual)
    text = program.text()
    assert "<float[5,3] w, float[3] b =  {" in text  # small weights only have their values
    assert "m = MatMul (x, w)" in text


def test_what_inner_graphs_read_is_kept(tmp_path: Path) -> None:
    def graph(name: str, kind: str) -> onnx.GraphProto:
        nodes = [helper.make_node(kind, ["a"], ["i"]), helper.make_node("Neg", ["i"], [name])]
        return helper.make_graph(nodes, name, [], [tensor(name, None)])

    branches = {"then_branch": graph("t", "Exp"), "else_branch": graph("e", "Relu")}
    nodes = [
        helper.make_node("Tanh", ["x"], ["a"]),
        helper.make_node("Tanh", ["x"], ["unused"]),
        helper.make_node("If", ["c"], ["y"], **branches),
    ]
    net = model(nodes, [tensor("x", [2, 5]), tensor("c", [], TensorProto.BOOL)], [tensor("y", [2, 5])])
    program = program_of(net, tmp_path / "net.onnx", X, np.array(True))
    assert [assignment.operator for assignment in program.assignments] == ["Tanh", "If"]
    (array,) = ReferenceEvaluator(onnx.load(program.write(tmp_path / "again"))).run(None, {"x": X, "c": np.array(True)})
    np.testing.assert_allclose(array, -np.exp(np.tanh(X)), rtol=1e-6)


def test_tensors_that_numpy_lacks_are_constants(tmp_path: Path) -> None:
    nodes = [helper.make_node("Cast", ["w"], ["f"], to=TensorProto.FLOAT), helper.make_node("Add", ["x", "f"], ["y"])]
    net = model(nodes, [tensor("x", [2, 5])], [tensor("y", [2, 5])])
    net.graph.initializer.append(helper.make_tensor("w", TensorProto.BFLOAT16, [1], [2.5]))
    program = program_of(net, tmp_path / "net.onnx", X)
    assert [assignment.operator for assignment in program.assignments] == ["Constant", "Cast", "Add"]
    (array,) = ReferenceEvaluator(onnx.load(program.write(tmp_path / "again"))).run(None, {"x": X})
    np.testing.assert_array_equal(array, X + 2.5)


def test_declared_shapes_that_contradict_the_operators(tmp_path: Path) -> None:
    net = linear()
    net.graph.value_info.append(tensor("m", ["B", 3]))
    assert not program_of(net, tmp_path / "net.onnx", X).contradicts()
    net.graph.value_info[0].CopyFrom(tensor("m", ["B", 4]))
    assert program_of(net, tmp_path / "net.onnx", X).contradicts()
