"""Repairs of an ONNX model that keep its meaning and let more releases of tract read it.

Each is a function of a file that returns another model, or the same one if there is nothing to repair.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import onnx
from onnx import inliner, shape_inference, version_converter

from t2n_core.errors import InputError

_IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*")
_MOST_BYTES: Final = (1 << 31) - 1
_OPSET: Final = 18
"""An opset that all lines of tract know well: later ones add functions and types that older releases lack."""


def remove_value_info(model: onnx.ModelProto) -> onnx.ModelProto:
    """Remove the declared shapes of intermediate values, and shapes of outputs that are formulas."""
    for graph in _graphs(model.graph):
        del graph.value_info[:]
        for value in graph.output:
            if any(d.dim_param and not _IDENTIFIER.fullmatch(d.dim_param) for d in value.type.tensor_type.shape.dim):
                value.type.tensor_type.ClearField("shape")
    return model


def rename_dimensions(model: onnx.ModelProto) -> onnx.ModelProto:
    """Give dimensions of inputs names that are identifiers."""
    names: dict[str, str] = {}
    for graph in _graphs(model.graph):
        for value in (*graph.input, *graph.output, *graph.value_info):
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param and not _IDENTIFIER.fullmatch(dim.dim_param):
                    dim.dim_param = names.setdefault(dim.dim_param, f"dim_{len(names)}")
    return model


def inline_functions(model: onnx.ModelProto) -> onnx.ModelProto:
    """Replace functions of the model, and operators that ONNX defines by others, by their nodes."""
    kept = [("", name) for name in _KEPT_FUNCTIONS]
    return inliner.inline_selected_functions(model, kept, exclude=True, inline_schema_functions=True)


def infer_types(model: onnx.ModelProto) -> onnx.ModelProto:
    """Add the types of values that the file does not state."""
    return shape_inference.infer_shapes(model, data_prop=True)


def fold_constants(model: onnx.ModelProto) -> onnx.ModelProto:
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


def convert_opset(model: onnx.ModelProto) -> onnx.ModelProto:
    """Convert a model of a later opset to one that all lines of tract know."""
    versions = [one.version for one in model.opset_import if one.domain in ("", "ai.onnx")]
    return version_converter.convert_version(model, _OPSET) if max(versions, default=0) > _OPSET else model


REPAIRS: Final[Mapping[str, Callable[[onnx.ModelProto], onnx.ModelProto]]] = {
    "remove declared shapes": remove_value_info,
    "rename dimensions": rename_dimensions,
    "fold constants": fold_constants,
    "infer types": infer_types,
    "inline functions": inline_functions,
    "convert the opset": convert_opset,
}
"""Repairs by name, in the order in which they are tried."""
_KEPT_FUNCTIONS: Final = ("Softmax", "LogSoftmax", "Relu", "LeakyRelu", "Clip", "Range")
"""Functions of the standard that every release implements, and that would be slower as their nodes."""


def repair(name: str, source: Path, target: Path) -> bool:
    """Write the repaired model, with its weights, and return whether the repair changed anything.

    Raises InputError for a model above 2 GB, or one that the tool for the repair refuses.
    """
    model = onnx.load(str(source))
    if model.ByteSize() > _MOST_BYTES:
        raise InputError(f"{source} has more than 2 GB, and is not repaired")
    before: bytes = model.SerializeToString(deterministic=True)
    try:
        repaired = REPAIRS[name](model)
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
