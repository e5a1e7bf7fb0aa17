"""Repairs of an ONNX model that keep its meaning and let more releases of tract read it.

Each is a function of a model, and of the operators that an engine lacks. It returns another model, or the same one if
there is nothing to repair.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper, shape_inference, version_converter

from t2n_core.errors import InputError
from t2n_core.onnx_file.model import MOST_BYTES
from t2n_core.onnx_file.writer_repairs import WRITER_REPAIRS, element_types, inline_functions

_IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*")
_BATCH_AND_CHANNELS: Final = 2
_OPSET: Final = 18
"""An opset that all lines of tract know well: later ones add functions and types that older releases lack."""


def remove_value_info(model: onnx.ModelProto, missing: Collection[str]) -> onnx.ModelProto:
    """Remove the declared shapes of intermediate values, and shapes of outputs that are formulas."""
    for graph in _graphs(model.graph):
        del graph.value_info[:]
        for value in graph.output:
            if any(d.dim_param and not _IDENTIFIER.fullmatch(d.dim_param) for d in value.type.tensor_type.shape.dim):
                value.type.tensor_type.ClearField("shape")
    return model


def rename_dimensions(model: onnx.ModelProto, missing: Collection[str]) -> onnx.ModelProto:
    """Give dimensions of inputs names that are identifiers."""
    names: dict[str, str] = {}
    for graph in _graphs(model.graph):
        for value in (*graph.input, *graph.output, *graph.value_info):
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param and not _IDENTIFIER.fullmatch(dim.dim_param):
                    dim.dim_param = names.setdefault(dim.dim_param, f"dim_{len(names)}")
    return model


def infer_types(model: onnx.ModelProto, missing: Collection[str]) -> onnx.ModelProto:
    """Add the types of values that the file does not state."""
    return shape_inference.infer_shapes(model, data_prop=True)


def fold_constants(model: onnx.ModelProto, missing: Collection[str]) -> onnx.ModelProto:
    """Compute what depends on constants alone, by onnxruntime, which also removes nodes without effect."""
    import onnxruntime

    with TemporaryDirectory() as folder:
        path = Path(folder, "folded.onnx")
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.optimized_model_filepath = str(path)
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return onnx.load(str(path))


def convert_opset(model: onnx.ModelProto, missing: Collection[str]) -> onnx.ModelProto:
    """Convert a model of a later opset to one that all lines of tract support."""
    versions = [opset.version for opset in model.opset_import if opset.domain in ("", "ai.onnx")]
    return version_converter.convert_version(model, _OPSET) if max(versions, default=0) > _OPSET else model


def replace_ranges(model: onnx.ModelProto, missing: Collection[str]) -> onnx.ModelProto:
    """Replace `Range(0, n, 1)` by a cumulative sum of ones: up to 0.22 tract does not convert a size to an integer."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    made = (node for node in model.graph.node if node.op_type == "Constant")
    constants |= {node.output[0]: a.t for node in made for a in node.attribute if a.name == "value"}
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        ends = [constants.get(name) for name in node.input] if node.op_type == "Range" else []
        if [None if end is None else numpy_helper.to_array(end).tolist() for end in ends] != [0, None, 1]:
            nodes.append(node)
            continue
        names = [f"{node.output[0]}_{part}" for part in ("axis", "shape", "one", "ones", "count")]
        axis, shape, unit, units, count = names
        for name, value in ((axis, np.zeros(1, np.int64)), (unit, np.ones((), np.int64))):
            model.graph.initializer.append(numpy_helper.from_array(value, name))
        filled = numpy_helper.from_array(np.ones(1, np.int64))
        nodes += [
            onnx.helper.make_node("Unsqueeze", [node.input[1], axis], [shape]),
            onnx.helper.make_node("ConstantOfShape", [shape], [units], value=filled),
            onnx.helper.make_node("CumSum", [units, f"{axis}_scalar"], [count]),
            onnx.helper.make_node("Sub", [count, unit], [node.output[0]], name=node.name),
        ]
        model.graph.initializer.append(numpy_helper.from_array(np.zeros((), np.int64), f"{axis}_scalar"))
    if len(nodes) != len(model.graph.node):
        del model.graph.node[:]
        model.graph.node.extend(nodes)
    return model


def count_in_32_bits(model: onnx.ModelProto, missing: Collection[str]) -> onnx.ModelProto:
    """Sum booleans that are cast to int64 in int32: tract takes what is cast to int64 for sizes, and sums none."""
    types = element_types(model)
    casts = {node.output[0]: node.input[0] for node in model.graph.node if node.op_type == "Cast"}
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        counted = node.input[0] if node.op_type == "CumSum" and types.get(node.input[0]) == TensorProto.INT64 else ""
        while counted in casts:
            counted = casts[counted]
        if types.get(counted) != TensorProto.BOOL:
            nodes.append(node)
            continue
        total = node.output[0]
        wide = onnx.helper.make_node("Cast", [f"{total}_narrow"], [total], to=TensorProto.INT64)
        nodes.append(onnx.helper.make_node("Cast", [counted], [f"{total}_of"], to=TensorProto.INT32))
        node.input[0], node.output[0] = f"{total}_of", f"{total}_narrow"
        nodes += [node, wide]
    if len(nodes) != len(model.graph.node):
        del model.graph.node[:]
        model.graph.node.extend(nodes)
    return model


def scale_by_constants(model: onnx.ModelProto, missing: Collection[str]) -> onnx.ModelProto:
    """Give a Resize of fixed-size images constant scales: tract takes no sizes that include a dynamic batch."""
    typed = shape_inference.infer_shapes(model, data_prop=True).graph
    values = (*typed.input, *typed.value_info, *typed.output)
    shapes = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in values}
    constants = {tensor.name for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type != "Resize" or len(node.input) < 4 or node.input[3] in constants:
            continue
        pairs = list(zip(shapes.get(node.input[0], ()), shapes.get(node.output[0], ()), strict=False))
        if pairs and all(all(pair) for pair in pairs[_BATCH_AND_CHANNELS:]):
            scales = [_scale(*pair) if all(pair) else np.float32(1) for pair in pairs]
            node.input[2] = f"{node.output[0]}_scales"
            del node.input[3]
            model.graph.initializer.append(numpy_helper.from_array(np.stack(scales), node.input[2]))
    return model


def _scale(size: int, scaled: int) -> np.float32:
    """Return the number by which a size is multiplied, and rounded down, to be the other one."""
    scale = np.float32(scaled / size)
    return scale if size * float(scale) >= scaled else np.nextafter(scale, np.float32(np.inf))


def transpose_in_four_dimensions(model: onnx.ModelProto, missing: Collection[str]) -> onnx.ModelProto:
    """Swap the last two of four dimensions directly: tract cannot always divide by sizes to join the first two."""
    typed = shape_inference.infer_shapes(model, data_prop=True).graph
    values = (*typed.input, *typed.value_info, *typed.output)
    ranks = {value.name: len(value.type.tensor_type.shape.dim) for value in values}
    made = {name: node for node in model.graph.node for name in node.output}
    swaps = 0
    for node in model.graph.node:
        transpose = made.get(node.input[0]) if node.op_type == "Reshape" else None
        if transpose is None or transpose.op_type != "Transpose" or _permutation(transpose) != [0, 2, 1]:
            continue
        join = made.get(transpose.input[0])
        if join is not None and join.op_type == "Reshape" and ranks.get(join.input[0]) == ranks[node.output[0]] == 4:
            swap = onnx.helper.make_node("Transpose", join.input[:1], node.output, name=node.name, perm=[0, 1, 3, 2])
            node.CopyFrom(swap)
            swaps += 1
    if swaps:
        _remove_unused(model.graph)
    return model


def _permutation(transpose: onnx.NodeProto) -> list[int]:
    return next((list(attribute.ints) for attribute in transpose.attribute if attribute.name == "perm"), [])


def _remove_unused(graph: onnx.GraphProto) -> None:
    """Remove nodes whose outputs nothing reads."""
    inner = {name for subgraph in _graphs(graph) for node in subgraph.node for name in node.input}
    read = inner | {value.name for subgraph in _graphs(graph) for value in subgraph.output}
    unused = [node for node in graph.node if not read & set(node.output)]
    for node in unused:
        graph.node.remove(node)
    if unused:
        _remove_unused(graph)


REPAIRS: Final[Mapping[str, Callable[[onnx.ModelProto, Collection[str]], onnx.ModelProto]]] = {
    "remove declared shapes": remove_value_info,
    "rename dimensions": rename_dimensions,
    "fold constants": fold_constants,
    "replace ranges": replace_ranges,
    "count in 32 bits": count_in_32_bits,
    "scale by constants": scale_by_constants,
    "transpose in four dimensions": transpose_in_four_dimensions,
    "infer types": infer_types,
    "inline functions": inline_functions,
    "convert the opset": convert_opset,
}
"""Repairs by name, in the order in which they are tried."""


def repair(name: str, source: Path, target: Path, missing: Collection[str] = ()) -> bool:
    """Write the repaired model, with its weights, and return whether the repair changed anything.

    `missing` are operators that an engine does not implement.

    Raises InputError for a model above 2 GB, or if the repair's tool refuses it.
    """
    model = onnx.load(str(source))
    if model.ByteSize() > MOST_BYTES:
        raise InputError(f"{source} has more than 2 GB, and is not repaired")
    before: bytes = model.SerializeToString(deterministic=True)
    try:
        repaired = {**REPAIRS, **WRITER_REPAIRS}[name](model, missing)
    except MemoryError:
        raise
    except Exception as wrong:
        raise InputError(f"{name}: {wrong}") from wrong
    after: bytes = repaired.SerializeToString(deterministic=True)
    target.write_bytes(after)
    return after != before


def _graphs(graph: onnx.GraphProto) -> Iterator[Any]:
    """Yield a graph and the graphs in its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in [attribute.g] if attribute.HasField("g") else [*attribute.graphs]:
                yield from _graphs(inner)
