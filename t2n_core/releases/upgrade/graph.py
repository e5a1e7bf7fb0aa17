"""The graph of an archive as the exporter has it: each value with a shape and a data type, from its evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from t2n_core.dialect.graphs.symbols import size_of
from t2n_core.dialect.tensors import Tensor
from t2n_core.errors import InputError
from t2n_core.nnef.dat import ArrayWeight
from t2n_core.nnef.graph import Fragment, Graph, Operation, Value
from t2n_core.nnef.reading.archive import ArchiveContent
from t2n_core.nnef.reading.binding import Signatures
from t2n_core.nnef.reading.document import Assignment, Expression, Name
from t2n_core.nnef.reading.flat import node_of
from t2n_core.nnef.sizes.dims import Dim, symbol


@dataclass(frozen=True, slots=True)
class Evaluated:
    """All values of an archive at some sizes."""

    sizes: Mapping[str, int]
    values: Mapping[str, Tensor]


def graph_of(content: ArchiveContent, evaluated: Sequence[Evaluated]) -> Graph:
    """Return the graph of an archive that was evaluated at one or more sizes.

    A value's extent that differs between the sizes is linear in one symbol, or a separate symbol. Raises InputError for
    a value that was not evaluated.
    """
    document = content.document
    extents = _Extents([evaluation.sizes for evaluation in evaluated])
    values = {name: _value(name, evaluated, extents) for name in evaluated[0].values}
    signatures = Signatures.of("tract").with_fragments(document.fragments)
    operations = []
    for assignment in map(signatures.bind, document.assignments):
        if not assignment.operator:
            continue
        if missing := [name for name in assignment.results if name not in values]:
            raise InputError(f"`{missing[0]}` has no shape")
        operations.append(_operation(assignment, values, extents, content))
    return Graph(
        document.name,
        [values[name] for name in document.inputs],
        [values[name] for name in document.outputs],
        operations,
        list(document.extensions),
        {name: Fragment(name, fragment.text, fragment.uses) for name, fragment in document.fragments.items()},
    )


def _value(name: str, evaluated: Sequence[Evaluated], extents: _Extents) -> Value:
    tensors = [evaluation.values[name] for evaluation in evaluated]
    if len({len(tensor.shape) for tensor in tensors}) > 1:
        raise InputError(f"`{name}` has another number of axes at other sizes")
    columns = list(zip(*(tensor.shape for tensor in tensors), strict=True))
    return Value(name, np.dtype(tensors[0].dtype), tuple(map(extents.size, columns)))


def _operation(
    assignment: Assignment, values: Mapping[str, Value], extents: _Extents, content: ArchiveContent
) -> Operation:
    arguments = {argument.name: _argument(argument.value, values, extents) for argument in assignment.arguments}
    outputs = tuple(values[name] for name in assignment.results)
    operation = Operation(assignment.operator, arguments, outputs, dtype=assignment.dtype)
    for value in outputs:
        value.producer = operation
    weight = content.tensors.get(str(arguments.get("label"))) if assignment.operator == "variable" else None
    if isinstance(weight, np.ndarray):
        outputs[0].weight = ArrayWeight(weight)
    return operation


def _argument(value: Any, values: Mapping[str, Value], extents: _Extents) -> Any:
    """Return an argument with values and sizes in the place of names; the text of anything else that is computed."""
    if isinstance(value, list | tuple):
        return type(value)(_argument(item, values, extents) for item in value)
    if not isinstance(value, Name | Expression):
        return value
    if extents.know(value.names if isinstance(value, Expression) else (value,)):  # also if a value has the same name
        return extents.size([size_of(node_of(value), sizes) for sizes in extents.sizes])
    return values.get(value, str(value)) if isinstance(value, Name) else value.text


class _Extents:
    """Sizes of values as functions of the symbols, by the numbers that they have at several sizes of these."""

    def __init__(self, sizes: Sequence[Mapping[str, int]]) -> None:
        self.sizes = sizes
        self._others: dict[tuple[int, ...], Dim] = {}

    def know(self, names: Sequence[str]) -> bool:
        """Return whether all names are symbols."""
        return all(name in self.sizes[0] for name in names)

    def size(self, numbers: Sequence[int]) -> Dim:
        """Return the size that has these numbers; a separate symbol if it is not linear in one symbol."""
        if len(set(numbers)) == 1:
            return int(numbers[0])
        for of_axis in self.sizes[0]:
            places = [sizes[of_axis] for sizes in self.sizes]
            if len(set(places)) < len(set(numbers)) or places[0] == places[1]:
                continue
            slope = Fraction(numbers[1] - numbers[0], places[1] - places[0])
            start = numbers[0] - slope * places[0]
            fits = all(slope * size + start == number for size, number in zip(places, numbers, strict=True))
            if fits and slope.denominator == 1:
                return int(slope) * symbol(of_axis) + int(start)
        return self._others.setdefault(tuple(numbers), symbol(f"size_{len(self._others)}"))
