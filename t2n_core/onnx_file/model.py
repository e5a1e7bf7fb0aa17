"""An ONNX model, read as untrusted data: it may be damaged, and its weights may lie in other files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx

from t2n_core.errors import InputError
from t2n_core.foreign import ForeignFileError, check_name, inside, read_file
from t2n_core.parity.judging.interface import Interface, Port

MOST_BYTES: Final = (1 << 31) - 1
"""Most bytes of a protobuf message; larger models keep their weights in other files."""
_MODEL: Final = "an ONNX model"
_KINDS: Final = "biuf"
"""The kinds of NumPy's data types whose values engines take and return."""
_WITH_OPSETS: Final = 3
"""The version of the format from which on a model names its opsets."""
_RANDOM: Final = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)


@dataclass(frozen=True, slots=True)
class OnnxPort:
    """An input or an output of a model."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | str, ...] | None
    """A number, or the name of a dynamic dimension; None if the model states no rank."""


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """A model whose external data has not been loaded."""

    path: Path
    proto: onnx.ModelProto
    inputs: tuple[OnnxPort, ...]
    outputs: tuple[OnnxPort, ...]
    data_files: tuple[str, ...]
    """The names of the files with weights, relative to the model's folder."""

    @property
    def symbols(self) -> tuple[str, ...]:
        """Return the names of the dynamic dimensions of inputs, in order."""
        return tuple(dict.fromkeys(d for port in self.inputs for d in port.shape or () if isinstance(d, str)))

    @property
    def functions(self) -> frozenset[str]:
        """Return the names of the operators that the model defines."""
        return frozenset(function.name for function in self.proto.functions)

    @property
    def random_operators(self) -> list[str]:
        """Return the operators that draw random numbers, so that no outputs can be expected."""
        return sorted(_RANDOM & {node.op_type for node in self.proto.graph.node})

    @property
    def interface(self) -> Interface:
        """Return the names, data types and input shapes that an engine has to load.

        Shapes of outputs are compared at each sample; their dimensions may have other names than the engine's.
        """
        inputs = tuple(Port(port.name, port.dtype.name, _extents(port)) for port in self.inputs)
        return Interface(inputs, tuple(Port(port.name, port.dtype.name) for port in self.outputs), "the ONNX file")


def read_model(path: Path) -> OnnxModel:
    """Return the model of a file. Raises InputError if it cannot be read, or has values other than tensors."""
    proto = parse_message(onnx.ModelProto, path, _MODEL)
    if not proto.graph.output:
        raise InputError(f"{path} is not {_MODEL}, or it is damaged: its graph has no output")
    if proto.ir_version >= _WITH_OPSETS and not proto.opset_import:
        raise InputError(f"{path} is damaged: it names no version of ONNX's operators")
    data_files = _data_files(path, proto)
    stored = {tensor.name for tensor in proto.graph.initializer}
    stored |= {tensor.values.name for tensor in proto.graph.sparse_initializer}
    inputs = tuple(_port(path, value, "input") for value in proto.graph.input if value.name not in stored)
    outputs = tuple(_port(path, value, "output") for value in proto.graph.output)
    return OnnxModel(path, proto, inputs, outputs, data_files)


def parse_message(kind: Any, path: Path, description: str) -> Any:
    """Return the message of an ONNX class that a file holds. Raises InputError for a file that is not `description`."""
    try:
        content = read_file(path, MOST_BYTES)
    except (OSError, ForeignFileError) as wrong:
        raise InputError(f"{path} cannot be read: {wrong}") from None
    try:
        return kind.FromString(content)
    except Exception:  # a class of protobuf, which onnx does not export
        raise InputError(f"{path} is not {description}, or it is damaged") from None


def _extents(port: OnnxPort) -> tuple[str, ...] | None:
    return None if port.shape is None else tuple(map(str, port.shape))


def _port(path: Path, value: onnx.ValueInfoProto, kind: str) -> OnnxPort:
    declared = value.type.optional_type.elem_type if value.type.HasField("optional_type") else value.type
    type_field = declared.WhichOneof("value")
    if type_field != "tensor_type":
        words = (type_field or "an untyped value").removesuffix("_type").replace("_", " ")
        raise InputError(f"{path}: the {kind} `{value.name}` is {_article(words)}, and only tensors are supported")
    tensor = declared.tensor_type
    try:
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    except (KeyError, TypeError):
        dtype = np.dtype(object)
    if dtype.kind not in _KINDS or dtype.type.__module__ != "numpy":
        type_names = {number: name.lower() for name, number in onnx.TensorProto.DataType.items()}
        name = type_names.get(tensor.elem_type, str(tensor.elem_type))
        raise InputError(f"{path}: the {kind} `{value.name}` has elements of type {name}, which are not supported")
    if not tensor.HasField("shape"):
        return OnnxPort(value.name, dtype, None)
    return OnnxPort(value.name, dtype, tuple(_extent(value.name, i, d) for i, d in enumerate(tensor.shape.dim)))


def _extent(name: str, axis: int, dim: Any) -> int | str:
    """Return the size of a dimension, or its name; one without either, or below 0, is named by input and axis."""
    return int(dim.dim_value) if dim.HasField("dim_value") and dim.dim_value >= 0 else dim.dim_param or f"{name}.{axis}"


def _article(words: str) -> str:
    return words if words.startswith("an ") else f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def _data_files(path: Path, proto: onnx.ModelProto) -> tuple[str, ...]:
    """Return the names of the files with weights.

    Raises InputError for a file that does not exist, is too short, or is outside the model's folder.
    """
    names: dict[str, None] = {}
    for tensor in _tensors(proto):
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        try:
            size = inside(path.absolute().parent, location).stat().st_size
            offset, length = (int(entries.get(key, "0")) for key in ("offset", "length"))
            if offset < 0 or length < 0:
                raise ForeignFileError(f"they begin at byte {offset} of {location}, and have {length} bytes")
        except (ForeignFileError, OSError, ValueError) as wrong:
            raise InputError(f"{path}: the data of `{tensor.name}` cannot be read: {wrong}") from None
        end = offset + length
        if end > size:
            raise InputError(f"{path}: the data of `{tensor.name}` ends at byte {end} of {location}, which has {size}")
        names[location] = None
    return tuple(names)


def bytes_with_weights(path: Path) -> bytes:
    """Return a model with its weights as the content of one file.

    Raises InputError for a file that is no model, or one of more than 2 GB.
    """
    if not read_model(path).data_files:
        return path.read_bytes()
    model = onnx.load(str(path))
    if model.ByteSize() > MOST_BYTES:
        raise InputError(f"{path} has more than 2 GB with its weights, which is too large for one file")
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def copy_model(source: Path, target: Path) -> None:
    """Copy a model and the files of its weights beside it. Raises InputError if one of these exists there."""
    model = read_model(source)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    for name in model.data_files:
        copy = target.parent.joinpath(*check_name(name))
        if copy.exists():
            raise InputError(f"{source} keeps weights in a file `{name}`, which is the name of another file")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(inside(source.absolute().parent, name), copy)


def _tensors(message: Any) -> Iterator[onnx.TensorProto]:
    """Yield the tensors in a message of ONNX, wherever they are: in graphs, in their nodes, in functions."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for item in value if hasattr(value, "add") else [value]:
            if isinstance(item, onnx.TensorProto):
                yield item
            else:
                yield from _tensors(item)
