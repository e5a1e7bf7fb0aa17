"""Check for problems that the Khronos parser accepts, although the standard or a later consumer rejects them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, Final

import sympy

from t2n_core.nnef.graph import Graph, Operation, Value

BORDERS: Final = frozenset(["ignore", "constant", "replicate", "reflect", "reflect-even"])
_LABEL: Final = re.compile(r"[A-Za-z0-9_\-./]+")
_ITEMS: Final = {"": float, "scalar": float, "integer": int, "logical": bool}


def check(graph: Graph) -> Iterator[tuple[Operation | None, str]]:
    """Yield the problems of a graph for strict NNEF 1.0, each with its operation (None for the whole graph)."""
    if graph.properties:
        yield None, "strict NNEF has no properties"
    labels: dict[str, Value] = {}
    for operation in graph.operations:
        for value in operation.outputs:
            if any(not isinstance(extent, int) or extent <= 0 for extent in value.shape):
                yield operation, f"`{value.name}` has shape {list(value.shape)}: extents are positive numbers in NNEF"
        for name, argument in operation.arguments.items():
            for literal in _literals(argument):
                if isinstance(literal, int) and not -(2**31) <= literal < 2**31:
                    yield operation, f"the integer {literal} in `{name}` wraps around in the parser (32 bits)"
        border = operation.arguments.get("border", "constant")
        if border not in BORDERS:
            yield operation, f"`{border}` is not a border of the standard"
        if operation.name == "constant":
            yield from ((operation, problem) for problem in _check_constant(operation))
        if operation.name == "variable":
            label, value = operation.arguments.get("label", ""), operation.outputs[0]
            if not _LABEL.fullmatch(str(label)):
                yield operation, f"{label!r} is not a label"
            if labels.setdefault(label, value).weight is not value.weight:
                yield operation, f"two weights have the label {label!r}"


def _check_constant(operation: Operation) -> Iterator[str]:
    values, shape = operation.arguments.get("value", []), operation.arguments.get("shape", [])
    if not any(isinstance(extent, sympy.Expr) for extent in shape) and len(values) not in (1, math.prod(shape)):
        yield f"`constant` has {len(values)} values for shape {list(shape)}"
    item_type = _ITEMS.get(operation.dtype, object)
    if any(type(value) is not item_type for value in values):
        yield f"`constant<{operation.dtype or 'scalar'}>` has values of another type"


def _literals(argument: Any) -> Iterator[Any]:
    if isinstance(argument, list | tuple):
        for item in argument:
            yield from _literals(item)
    elif not isinstance(argument, Value | bool):
        yield argument
