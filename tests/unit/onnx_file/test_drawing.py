"""Sizes and values of inputs that are drawn for ONNX models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from t2n_core.errors import DrawError, InputError
from t2n_core.onnx_file.drawing import draw_samples, index_bounds, sizes_of
from t2n_core.onnx_file.model import read_model
from t2n_core.onnx_file.references import RUNTIME, open_reference
from tests.onnx_nets import FLOAT, INT64, embedding, linear, model, saved, tensor


def drawn(net: onnx.ModelProto, folder: Path, sizes: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
    content = read_model(saved(net, folder / "net.onnx"))
    return list(draw_samples(content, open_reference(RUNTIME, content), sizes or {}, 60))


def test_sizes_differ_and_include_one(tmp_path: Path) -> None:
    samples = drawn(linear(), tmp_path)
    sizes = [sample[0]["B"] for sample in samples]
    assert len(sizes) == 7
    assert len(set(sizes)) == 6
    assert 1 in sizes
    first, second = (inputs[0] for at, inputs, _ in samples if at["B"] == sizes[0])
    assert (first != second).all()
    assert all(inputs[0].shape == (at["B"], 5) and outputs[0].shape == (at["B"], 3) for at, inputs, outputs in samples)
    assert any((inputs[0] < 0).any() for _, inputs, _ in samples)


def test_the_first_sizes_that_the_model_takes_come_twice(tmp_path: Path) -> None:
    """Outputs of different inputs are compared at one size, which the very first one need not be."""
    node = helper.make_node("Pad", ["x", "pads"], ["y"], mode="reflect")
    net = model([node], [tensor("x", ["T"])], [tensor("y", None)], {"pads": np.array([9, 9])})
    sizes = [sample[0]["T"] for sample in drawn(net, tmp_path)]
    assert sizes[0] == sizes[1] > 9
    assert len(set(sizes)) == len(sizes) - 1 == 6


def test_a_fixed_size_is_kept(tmp_path: Path) -> None:
    assert [sample[0] for sample in drawn(linear(), tmp_path, {"B": 9})] == [{"B": 9}] * 3
    with pytest.raises(InputError, match="no dynamic dimension N"):
        drawn(linear(), tmp_path, {"N": 9})


def test_indices_reach_the_end_of_their_table(tmp_path: Path) -> None:
    assert index_bounds(read_model(saved(embedding(37), tmp_path / "net.onnx"))) == {"ids": 37}
    largest = max(inputs[0].max(initial=0) for _, inputs, _ in drawn(embedding(37), tmp_path))
    assert 10 < largest < 37


def test_an_index_into_a_result_is_as_small_as_it_has_to_be(tmp_path: Path) -> None:
    node = helper.make_node("Gather", ["x", "i"], ["y"])
    net = model([node], [tensor("x", [2, 3]), tensor("i", [4], INT64)], [tensor("y", [4, 3])])
    assert all(inputs[1].max() < 2 for _, inputs, _ in drawn(net, tmp_path))


def test_unnamed_dimensions_that_have_to_be_equal(tmp_path: Path) -> None:
    node = helper.make_node("MatMul", ["a", "b"], ["y"])
    net = model([node], [tensor("a", [2, None]), tensor("b", [None, 3])], [tensor("y", [2, 3])])
    sizes = [sample[0] for sample in drawn(net, tmp_path)]
    assert len(sizes) == 7
    assert all(assignment["a.1"] == assignment["b.0"] for assignment in sizes)


def test_an_image_that_is_reduced_often_is_large_enough(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("MaxPool", [f"x{level}"], [f"x{level + 1}"], kernel_shape=[2, 2], strides=[2, 2])
        for level in range(6)
    ]
    net = model(nodes, [tensor("x0", ["B", 3, "H", "W"])], [tensor("x6", None)])
    assert all(outputs[0].size for at, _, outputs in drawn(net, tmp_path) if at["B"])
    assert any(at["H"] != at["W"] for at, _, _ in drawn(net, tmp_path))


def test_quantised_values_use_their_full_range(tmp_path: Path) -> None:
    node = helper.make_node("Cast", ["x"], ["y"], to=FLOAT)
    net = model([node], [tensor("x", [40, 50], TensorProto.INT8)], [tensor("y", [40, 50])])
    _, (values,), _ = drawn(net, tmp_path)[0]
    assert (values.min(), values.max()) == (-128, 127)


def test_a_model_that_runs_at_no_size(tmp_path: Path) -> None:
    node = helper.make_node("Reshape", ["x", "s"], ["y"])
    net = model([node], [tensor("x", [2, 3])], [tensor("y", [5])], {"s": np.array([5])})
    with pytest.raises(InputError, match="no inputs could be drawn"):
        drawn(net, tmp_path)


def test_sizes_of_inputs(tmp_path: Path) -> None:
    content = read_model(saved(linear(), tmp_path / "net.onnx"))
    assert sizes_of(content, [np.zeros((7, 5))]) == {"B": 7}
    with pytest.raises(InputError, match="`x` has 2 dimensions, and 1 are given"):
        sizes_of(content, [np.zeros(5)])


def test_a_dimension_that_is_computed_has_a_size_that_it_can_have(tmp_path: Path) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    net = model([node], [tensor("x", ["B", "4*H", "H + 1"])], [tensor("y", None)])
    shapes = [inputs[0].shape for _, inputs, _ in drawn(net, tmp_path)]
    assert all(rows == 4 * (columns - 1) for _, rows, columns in shapes)
    assert len({rows for _, rows, _ in shapes}) > 3
    assert [inputs[0].shape[1:] for _, inputs, _ in drawn(net, tmp_path, {"H": 5})] == [(20, 6)] * 7


def of_dimension(dimension: str) -> onnx.ModelProto:
    return model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", [dimension])], [tensor("y", None)])


@pytest.mark.parametrize("dimension", ["H - 5", "H // 3", "a\0b", "(" * 300 + "H"])
def test_a_computed_dimension_has_a_size_or_is_a_name(dimension: str, tmp_path: Path) -> None:
    assert min(inputs[0].shape[0] for _, inputs, _ in drawn(of_dimension(dimension), tmp_path)) >= 1


def test_a_dimension_without_any_size_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DrawError, match="no inputs could be drawn"):
        drawn(of_dimension("H // 0 + 1"), tmp_path)


def test_a_least_size_is_kept(tmp_path: Path) -> None:
    sizes = [sample[0]["B"] for sample in drawn(linear(), tmp_path, {"B": [16]})]
    assert min(sizes) == 16
    assert len(set(sizes)) == 6
