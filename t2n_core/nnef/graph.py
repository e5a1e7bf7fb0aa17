"""The NNEF graph in memory: values, operations, fragments. Built by the emitter, read by legality check and writer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from t2n_core.errors import Origin, SpecError
from t2n_core.nnef.dat import WeightSource
from t2n_core.nnef.signatures import COMMENT, fragment_signature
from t2n_core.nnef.sizes.dims import Dim, Shape
from t2n_core.nnef.sizes.ranges import SizeRange

BOOL, INT64 = np.dtype(np.bool_), np.dtype(np.int64)
FLOAT16, FLOAT32, FLOAT64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)


@dataclass(slots=True, eq=False)
class Value:
    """One tensor of the graph. Values are compared by identity."""

    name: str
    dtype: np.dtype[Any]
    shape: Shape
    producer: Operation | None = field(default=None, repr=False)
    weight: WeightSource | None = field(default=None, repr=False)
    """Set for variables: the source of the elements."""

    @property
    def rank(self) -> int:
        return len(self.shape)

    def type(self) -> ValueType:
        """Return its type, as rules that were written for torch.onnx read it: `value.type().sizes()`."""
        return ValueType(self)


@dataclass(frozen=True, slots=True)
class ValueType:
    """Shape and dtype of a value, by the methods of a type in TorchScript."""

    value: Value

    def sizes(self) -> list[int | None]:
        """Return the shape, with None for a symbolic size."""
        return [size if isinstance(size, int) else None for size in self.value.shape]

    def dim(self) -> int:
        """Return the number of axes."""
        return self.value.rank


Argument: TypeAlias = "Value | bool | int | float | str | Dim | Sequence[Argument] | None"


@dataclass(slots=True, eq=False)
class Operation:
    """One operation. `arguments` are in the order of the operator's signature; omitted ones have their default."""

    name: str
    arguments: dict[str, Any]
    outputs: tuple[Value, ...]
    origin: Origin | None = None
    dtype: str = ""
    """The type in angle brackets, `scalar` in `external<scalar>(...)`; empty if there is none."""

    def inputs(self) -> Iterator[Value]:
        for argument in self.arguments.values():
            if isinstance(argument, Value):
                yield argument
            elif isinstance(argument, list | tuple):
                yield from values_in(argument)


@dataclass(frozen=True, slots=True)
class Fragment:
    """A named piece of NNEF text that an operation of the graph refers to (as operator or as the body of a scan)."""

    name: str
    text: str
    uses: frozenset[str] = frozenset()
    """Names of the operators in its body, for the legality check."""


def fragment_of(text: str) -> Fragment:
    """Return a fragment from its NNEF text, with the operators that it uses. Raises SpecError if it declares none."""
    plain = COMMENT.sub("", text)
    head = re.search(r"\bfragment\s+(\w+)", plain)
    if head is None:
        raise SpecError(f"no fragment is declared in {text.strip()[:60]!r}")
    fragment_signature(head[1], text)
    body = plain.partition("{")[2]
    return Fragment(head[1], text, frozenset(re.findall(r"([A-Za-z_]\w*)\s*(?:<[^>]*>)?\s*\(", body)))


@dataclass(slots=True)
class Graph:
    """An NNEF graph; its inputs and outputs are in the order of the model's."""

    name: str = "network"
    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    extensions: list[str] = field(default_factory=list)
    """Lines without the keyword `extension`: `tract_registry tract_core`, `tract_symbol T`."""
    fragments: dict[str, Fragment] = field(default_factory=dict)
    sizes: SizeRange = field(default_factory=SizeRange)
    """Sizes of the dynamic axes that it is valid for."""
    narrowed: list[str] = field(default_factory=list)
    """The reason of each operation for which the target takes fewer sizes than the captured graph."""
    guarded: bool = False
    """True where an engine refuses all other sizes."""
    properties: dict[str, str] = field(default_factory=dict)
    """Written only when a user sets them (tract's `properties` fragment)."""
    stored: dict[str, Any] = field(default_factory=dict)
    """Label of a weight -> its storage, where the storage format is not the model's."""
    effects: set[str] = field(default_factory=set)
    """The fields of WritingOptions that changed the lowering of an operation."""
    declined: dict[str, list[str]] = field(default_factory=dict)
    """Field of WritingOptions -> for each torch operator that it applies to but did not change, the reason."""

    def variables(self) -> Iterator[tuple[Operation, Value]]:
        """Yield the `variable` operations with their values, in order."""
        for operation in self.operations:
            if operation.name == "variable":
                yield operation, operation.outputs[0]


def new_operation(operator: str, arguments: dict[str, Any], result: Value, origin: Origin | None = None) -> Operation:
    """Return an operation that produces a value, for a place in the graph that the caller chooses."""
    result.producer = Operation(operator, arguments, (result,), origin)
    return result.producer


def readers_of(graph: Graph) -> dict[Value, list[Operation]]:
    """Return the operations that read each value, in their order; an operation that reads it twice is listed twice."""
    readers: dict[Value, list[Operation]] = {}
    for operation in graph.operations:
        for value in operation.inputs():
            readers.setdefault(value, []).append(operation)
    return readers


def values_in(argument: Any) -> Iterator[Value]:
    """Yield all graph values inside one argument, also in nested lists and tuples."""
    if isinstance(argument, Value):
        yield argument
    elif isinstance(argument, list | tuple):
        for item in argument:
            yield from values_in(item)


def is_full(weight: WeightSource) -> bool:
    """Return whether all elements are equal."""
    array = np.frombuffer(b"".join(weight.chunks()), weight.dtype.newbyteorder("<"))
    return bool((array == array[:1]).all())


def before_transposes(value: Value, axes: Sequence[int]) -> tuple[Value, list[int]]:
    """Return the value before the transposes that produce `value`, and `axes` as axes of that value."""
    order = list(axes)
    while value.producer is not None and value.producer.name == "transpose":
        order = [value.producer.arguments["axes"][axis] for axis in order]
        value = next(value.producer.inputs())
    return value, order


_SIZES_ALONE = frozenset({"tract_core_shape_of", "shape_of"})
"""Operators whose result does not depend on the elements of their operand."""


def constant_outputs(graph: Graph) -> frozenset[str]:
    """Return the names of the outputs that depend on no element of an input."""
    reached: set[Value] = set(graph.inputs)
    for operation in graph.operations:
        if operation.name not in _SIZES_ALONE and not reached.isdisjoint(operation.inputs()):
            reached.update(operation.outputs)
    return frozenset(value.name for value in graph.outputs if value not in reached)
