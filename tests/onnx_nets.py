"""Small ONNX models for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def tensor(name: str, shape: Sequence[int | str | None] | None, dtype: int = FLOAT) -> onnx.ValueInfoProto:
    """Return the declaration of an input or an output."""
    return helper.make_tensor_value_info(name, dtype, shape)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    constants: Mapping[str, Any] | None = None,
    opset: int = 17,
) -> onnx.ModelProto:
    """Return a model with one graph."""
    stored = [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    graph = helper.make_graph(nodes, "net", inputs, outputs, stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def saved(net: onnx.ModelProto, path: Path) -> Path:
    """Write a model, and return its path."""
    path.write_bytes(net.SerializeToString())
    return path


def linear() -> onnx.ModelProto:
    """Return a linear layer with a dynamic batch."""
    random = np.random.default_rng(0)
    weight, bias = random.normal(size=(5, 3)).astype("f4"), random.normal(size=3).astype("f4")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "b"], ["y"])]
    return model(nodes, [tensor("x", ["B", 5])], [tensor("y", ["B", 3])], {"w": weight, "b": bias})


def embedding(length: int = 37) -> onnx.ModelProto:
    """Return rows of a table by integers."""
    table = np.random.default_rng(0).normal(size=(length, 4)).astype("f4")
    nodes = [helper.make_node("Cast", ["ids"], ["wide"], to=INT64), helper.make_node("Gather", ["t", "wide"], ["y"])]
    inputs = [tensor("ids", ["B", "T"], TensorProto.INT32)]
    return model(nodes, inputs, [tensor("y", ["B", "T", 4])], {"t": table})


def lstm(direction: str) -> onnx.ModelProto:
    """Return an LSTM in one direction."""
    random = np.random.default_rng(0)
    weights = {"W": (1, 16, 3), "R": (1, 16, 4), "B": (1, 32)}
    constants = {name: random.normal(size=shape).astype("f4") for name, shape in weights.items()}
    node = helper.make_node("LSTM", ["x", "W", "R", "B"], ["y"], hidden_size=4, direction=direction)
    return model([node], [tensor("x", ["T", 2, 3])], [tensor("y", ["T", 1, 2, 4])], constants)


def attention_keys() -> onnx.ModelProto:
    """Return keys of all but the first step, transposed in three dimensions, as torch.onnx writes attention."""
    nodes = [
        helper.make_node("Slice", ["x", "one", "end", "two"], ["keys"]),
        helper.make_node("Shape", ["keys"], ["heads"], end=2),
        helper.make_node("Shape", ["keys"], ["steps"], start=2, end=3),
        helper.make_node("Concat", ["rest", "steps", "eight"], ["joined"], axis=0),
        helper.make_node("Reshape", ["keys", "joined"], ["flat"]),
        helper.make_node("Transpose", ["flat"], ["swapped"], perm=[0, 2, 1]),
        helper.make_node("Concat", ["heads", "eight", "steps"], ["apart"], axis=0),
        helper.make_node("Reshape", ["swapped", "apart"], ["y"]),
    ]
    constants = {"one": 1, "end": (1 << 63) - 1, "two": 2, "rest": -1, "eight": 8}
    stored = {name: np.array([value]) for name, value in constants.items()}
    return model(nodes, [tensor("x", ["B", 4, "T", 8])], [tensor("y", [None, 4, 8, None])], stored)
