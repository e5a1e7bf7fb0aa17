"""Repairs of ONNX models, one by one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.reference
import pytest
from onnx import TensorProto, helper, numpy_helper

from t2n_core.errors import InputError
from t2n_core.onnx_file.repairs import repair
from tests.onnx_nets import INT64, attention_keys, linear, model, saved, tensor


def repaired(name: str, net: onnx.ModelProto, folder: Path, *missing: str) -> onnx.ModelProto | None:
    """Return the repaired model; None if the repair changes nothing."""
    target = folder / "target.onnx"
    return onnx.load(target) if repair(name, saved(net, folder / "net.onnx"), target, missing) else None


def test_declared_shapes(tmp_path: Path) -> None:
    assert repaired("remove declared shapes", linear(), tmp_path) is None
    net = linear()
    net.graph.value_info.append(tensor("m", ["other", 3]))
    net.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "((B - 1)//2) + 1"
    changed = repaired("remove declared shapes", net, tmp_path)
    assert changed is not None
    assert not changed.graph.value_info
    assert not changed.graph.output[0].type.tensor_type.HasField("shape")


def test_names_of_dimensions(tmp_path: Path) -> None:
    assert repaired("rename dimensions", linear(), tmp_path) is None
    net = linear()
    for port in (net.graph.input[0], net.graph.output[0]):
        port.type.tensor_type.shape.dim[0].dim_param = "batch size"
    changed = repaired("rename dimensions", net, tmp_path)
    assert changed is not None
    names = {port.type.tensor_type.shape.dim[0].dim_param for port in (*changed.graph.input, *changed.graph.output)}
    assert names == {"dim_0"}


def test_functions(tmp_path: Path) -> None:
    nodes = [helper.make_node("Mish", ["x"], ["m"]), helper.make_node("Gelu", ["m"], ["y"])]
    net = model(nodes, [tensor("x", [3])], [tensor("y", [3])], opset=20)
    assert repaired("inline functions", net, tmp_path) is None
    changed = repaired("inline functions", net, tmp_path, "Mish")
    assert changed is not None
    operators = [node.op_type for node in changed.graph.node]
    assert "Mish" not in operators
    assert operators[-1] == "Gelu"


def test_constants(tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", ["a", "b"], ["s"]), helper.make_node("Reshape", ["x", "s"], ["y"])]
    net = model(nodes, [tensor("x", [2, 3])], [tensor("y", [3, 2])], {"a": np.array([1, 1]), "b": np.array([2, 1])})
    changed = repaired("fold constants", net, tmp_path)
    assert changed is not None
    assert [node.op_type for node in changed.graph.node] == ["Reshape"]


def test_ranges(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Range", ["zero", "n", "step"], ["r"]),
        helper.make_node("Range", ["zero", "n", "two"], ["y"]),
    ]
    constants = {"zero": np.array(0), "step": np.array(1), "two": np.array(2)}
    net = model(nodes, [tensor("n", [], INT64)], [tensor("r", ["N"], INT64), tensor("y", ["M"], INT64)], constants)
    changed = repaired("replace ranges", net, tmp_path)
    assert changed is not None
    assert [node.op_type for node in changed.graph.node] == ["Unsqueeze", "ConstantOfShape", "CumSum", "Sub", "Range"]
    onnx.checker.check_model(changed)
    for size in (0, 1, 5):
        got = onnx.reference.ReferenceEvaluator(changed).run(None, {"n": np.array(size)})
        np.testing.assert_array_equal(got[0], np.arange(size))


def test_a_range_that_does_not_start_at_0_stays(tmp_path: Path) -> None:
    ends = {"start": np.float32(0.5), "step": np.float32(1)}
    node = helper.make_node("Range", ["start", "n", "step"], ["y"])
    assert repaired("replace ranges", model([node], [tensor("n", [])], [tensor("y", ["N"])], ends), tmp_path) is None


@pytest.mark.parametrize(("dtype", "operators"), [
    (TensorProto.BOOL, ["Cast", "Cast", "CumSum", "Cast"]),
    (TensorProto.INT32, ["Cast"]),
])  # fmt: skip
def test_counts(dtype: int, operators: list[str], tmp_path: Path) -> None:
    """Sums of other integers need 64 bits."""
    nodes = [
        helper.make_node("Cast", ["x"], ["wide"], to=INT64),
        helper.make_node("CumSum", ["wide", "axis"], ["y"], exclusive=1, reverse=1),
    ]
    net = model(nodes, [tensor("x", ["B", "T"], dtype)], [tensor("y", ["B", "T"], INT64)], {"axis": np.array(1)})
    changed = repaired("count in 32 bits", net, tmp_path)
    if dtype != TensorProto.BOOL:
        assert changed is None
        return
    assert changed is not None
    assert [node.op_type for node in changed.graph.node] == operators
    onnx.checker.check_model(changed, full_check=True)
    x = {"x": np.random.default_rng(0).random((3, 7)) > 0.5}
    expected, got = (onnx.reference.ReferenceEvaluator(proto).run(None, x)[0] for proto in (net, changed))
    np.testing.assert_array_equal(got, expected, strict=True)


def test_sizes_of_an_image(tmp_path: Path) -> None:
    """The size of the batch is symbolic; 3 * float32(7 / 3) is below 7, and the scale is the next larger number."""
    nodes = [
        helper.make_node("Shape", ["x"], ["batch"], end=2),
        helper.make_node("Concat", ["batch", "size"], ["sizes"], axis=0),
        helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode="linear"),
    ]
    net = model(nodes, [tensor("x", ["B", 1, 3, 11])], [tensor("y", ["B", 1, 7, 26])], {"size": np.array([7, 26])})
    changed = repaired("scale by constants", net, tmp_path)
    assert changed is not None
    onnx.checker.check_model(changed, full_check=True)
    assert len(changed.graph.node[-1].input) == 3
    scales = numpy_helper.to_array(changed.graph.initializer[-1])
    for dtype in ("f4", "f8"):
        assert np.floor(np.array([5, 1, 3, 11], dtype) * scales).tolist() == [5, 1, 7, 26]
    x = {"x": np.random.default_rng(0).random((5, 1, 3, 11), "f4")}
    expected, got = (onnx.reference.ReferenceEvaluator(proto).run(None, x)[0] for proto in (net, changed))
    np.testing.assert_allclose(got, expected, atol=1e-6)


def test_an_image_of_any_size_has_no_constant_scales(tmp_path: Path) -> None:
    node = helper.make_node("Resize", ["x", "", "", "sizes"], ["y"])
    ports = [tensor("x", ["B", 1, "H", 4]), tensor("sizes", [4], INT64)], [tensor("y", ["B", 1, 7, 8])]
    assert repaired("scale by constants", model([node], *ports), tmp_path) is None


def test_keys_of_attention(tmp_path: Path) -> None:
    changed = repaired("transpose in four dimensions", attention_keys(), tmp_path)
    assert changed is not None
    onnx.checker.check_model(changed, full_check=True)
    assert [node.op_type for node in changed.graph.node] == ["Slice", "Transpose"]
    x = {"x": np.random.default_rng(0).random((2, 4, 6, 8), "f4")}
    expected, got = (onnx.reference.ReferenceEvaluator(proto).run(None, x)[0] for proto in (attention_keys(), changed))
    np.testing.assert_array_equal(got, expected, strict=True)


def test_another_transpose_in_three_dimensions_stays(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Reshape", ["x", "joined"], ["flat"]),
        helper.make_node("Transpose", ["flat"], ["swapped"], perm=[0, 2, 1]),
        helper.make_node("Reshape", ["swapped", "apart"], ["y"]),
    ]
    shapes = {"joined": np.array([-1, 5, 8]), "apart": np.array([-1, 40])}
    net = model(nodes, [tensor("x", ["B", 4, 5, 8])], [tensor("y", [None, 40])], shapes)
    assert repaired("transpose in four dimensions", net, tmp_path) is None


def test_the_opset(tmp_path: Path) -> None:
    net = model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", [3])], [tensor("y", [3])], opset=21)
    changed = repaired("convert the opset", net, tmp_path)
    assert changed is not None
    assert changed.opset_import[0].version == 18
    assert repaired("convert the opset", linear(), tmp_path) is None


def test_types(tmp_path: Path) -> None:
    net = model([helper.make_node("Shape", ["x"], ["n"]), helper.make_node("Identity", ["n"], ["y"])],
                [tensor("x", [2, 3])], [tensor("y", [2], INT64)])  # fmt: skip
    changed = repaired("infer types", net, tmp_path)
    assert changed is not None
    assert [value.name for value in changed.graph.value_info] == ["n"]


def test_a_tool_that_refuses_the_model(tmp_path: Path) -> None:
    net = model([helper.make_node("Unknown", ["x"], ["y"], domain="mine")], [tensor("x", [2])], [tensor("y", [2])])
    with pytest.raises(InputError, match="fold constants: "):
        repair("fold constants", saved(net, tmp_path / "net.onnx"), tmp_path / "target.onnx")
