"""A candidate of the reduction of an ONNX model: its nodes as assignments, so that passes for archives change them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import onnx.printer
from onnx import numpy_helper, shape_inference

from t2n_core.errors import InputError
from t2n_core.nnef.reading.binding import Signatures
from t2n_core.nnef.reading.document import Argument, Assignment, Name
from t2n_core.onnx_file.model import MOST_BYTES, OnnxModel, read_model
from t2n_core.onnx_file.writer_repairs import element_types
from t2n_core.reduce.program import ONNX_FILE, Array, Program, Weight

_CAPTURED: Final = "captured"
"""The argument with the values of the outer graph that the graphs in a node read."""
_SHOWN: Final = 8
"""Most elements of a weight that the text shows."""
_NO_VALUE: Final = re.compile(r"(?<=\w) =  \{\}")


@dataclass(frozen=True, slots=True, eq=False)
class OnnxProgram(Program):
    """The graph of an ONNX model with the values of its inputs; attributes of nodes are arguments by name."""

    head: Any = field(default_factory=onnx.ModelProto)
    """The model without its graph's nodes and values."""
    types: Mapping[str, int] = field(default_factory=dict)
    """ONNX's element type of each value that is a tensor."""

    @property
    def inlines_sizes(self) -> bool:
        return False

    def results(self) -> list[str]:
        """Return the names of the computed values that can become outputs, in order."""
        return [name for assignment in self.assignments for name in assignment.results if name in self.types]

    def text(self, *, strict: bool = False) -> str:
        """Return the model as ONNX prints it, with the values of small weights only."""
        weights = {}
        for name, weight in self.weights.items():
            array = np.asarray(weight)
            proto = onnx.TensorProto(name=name, data_type=_type_of(array), dims=array.shape)
            weights[name] = numpy_helper.from_array(array, name) if array.size <= _SHOWN else proto
        return _NO_VALUE.sub("", onnx.printer.to_text(self._model(weights))).strip() + "\n"

    def write(self, folder: Path, *, strict: bool = False) -> Path:
        """Write a model over the content of `folder`, and return its path."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        path = folder / ONNX_FILE
        path.write_bytes(self._whole_model().SerializeToString())
        return path

    def _whole_model(self) -> onnx.ModelProto:
        return self._model({name: numpy_helper.from_array(np.asarray(w), name) for name, w in self.weights.items()})

    def _model(self, weights: Mapping[str, onnx.TensorProto]) -> onnx.ModelProto:
        model = onnx.ModelProto()
        model.CopyFrom(self.head)
        model.graph.node.extend(map(_node, self.assignments))
        model.graph.initializer.extend(weights.values())
        for name, array in self.inputs.items():
            axes = self.symbols.get(name, {})
            shape = [axes.get(axis, extent) for axis, extent in enumerate(array.shape)]
            model.graph.input.append(onnx.helper.make_tensor_value_info(name, _type_of(array), shape))
        for name in self.outputs:
            plain = onnx.helper.make_tensor_value_info(name, self.types.get(name, 0), None)
            model.graph.output.append(self.declared.get(name, plain))
        inner = set(self.results()) - set(self.outputs)
        model.graph.value_info.extend(value_info for name, value_info in self.declared.items() if name in inner)
        return model

    def contradicts(self) -> bool:
        if not self.declared:
            return False
        try:
            shape_inference.infer_shapes(self._whole_model(), strict_mode=True)
        except shape_inference.InferenceError:
            return True
        return False

    @classmethod
    def of_file(cls, path: Path, inputs: Sequence[Array], signatures: Signatures) -> OnnxProgram:
        """Return a model with its inputs, in graph order. Raises InputError if they do not fit, or it is too large."""
        read = read_model(path)
        if len(inputs) != len(read.inputs):
            raise InputError(f"{len(inputs)} inputs are passed, the model has {len(read.inputs)}")
        model = onnx.load(str(path))
        if model.ByteSize() > MOST_BYTES:
            raise InputError(f"{path} has more than 2 GB, and is not taken apart")
        stored = {tensor.name for tensor in model.graph.initializer}
        types = {name: kind for name, kind in element_types(model).items() if kind and name not in stored}
        weights: dict[str, Weight] = {}
        nodes = list(model.graph.node)
        for tensor in model.graph.initializer:
            if _is_plain(tensor):
                weights[tensor.name] = numpy_helper.to_array(tensor)
            else:
                nodes.insert(0, onnx.helper.make_node("Constant", [], [tensor.name], value=tensor))
        declared = {value_info.name: value_info for value_info in (*model.graph.value_info, *model.graph.output)}
        for name in ("node", "initializer", "input", "output", "value_info", "quantization_annotation"):
            model.graph.ClearField(name)
        program = cls(
            {port.name: array for port, array in zip(read.inputs, inputs, strict=True)},
            weights,
            tuple(map(_assignment, nodes)),
            tuple(port.name for port in read.outputs),
            signatures,
            symbols=_symbols(read),
            head=model,
            types=types,
            declared=declared,
        )
        pruned = program.prune()
        assert isinstance(pruned, OnnxProgram)
        return pruned


def _symbols(model: OnnxModel) -> dict[str, dict[int, Any]]:
    """Return the name of each dynamic dimension by input and axis, None for one without a name."""
    symbols: dict[str, dict[int, Any]] = {}
    for port in model.inputs:
        for axis, extent in enumerate(port.shape or ()):
            if isinstance(extent, str):
                name = None if extent == f"{port.name}.{axis}" else Name(extent)
                symbols.setdefault(port.name, {})[axis] = name
    return symbols


def _is_plain(tensor: onnx.TensorProto) -> bool:
    """Return whether NumPy has the tensor's data type."""
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type))
    return dtype.kind in "biuf" and dtype.type.__module__ == "numpy"


def _type_of(array: Array) -> int:
    return int(onnx.helper.np_dtype_to_tensor_dtype(array.dtype))


def _assignment(node: onnx.NodeProto) -> Assignment:
    operator = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
    arguments = [Argument("", Name(name)) for name in node.input]
    arguments += [Argument(attribute.name, attribute) for attribute in node.attribute]
    captured = dict.fromkeys(_captured(node))
    arguments += [Argument(_CAPTURED, [Name(name) for name in captured])] if captured else []
    return Assignment(tuple(node.output), operator, tuple(arguments))


def _node(assignment: Assignment) -> onnx.NodeProto:
    domain, _, kind = assignment.operator.rpartition(".")
    node = onnx.helper.make_node(
        kind, [str(a.value) for a in assignment.arguments if not a.name], assignment.results, domain=domain
    )
    node.attribute.extend(a.value for a in assignment.arguments if a.name and a.name != _CAPTURED)
    return node


def _captured(node: onnx.NodeProto) -> Iterator[str]:
    """Yield the values of outer graphs that the graphs in a node read."""
    for attribute in node.attribute:
        for graph in [attribute.g] if attribute.HasField("g") else [*attribute.graphs]:
            defined = {tensor.name for tensor in graph.initializer} | {value.name for value in graph.input}
            defined |= {name for inner_node in graph.node for name in inner_node.output}
            used = [name for inner_node in graph.node for name in (*inner_node.input, *_captured(inner_node))]
            used += [value.name for value in graph.output]
            yield from (name for name in used if name and name not in defined)
