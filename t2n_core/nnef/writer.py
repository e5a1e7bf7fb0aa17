"""Writer of a graph as NNEF text: one operation per line, the same text for the same graph."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import sympy

from t2n_core.errors import SpecError, WriteError
from t2n_core.nnef.graph import Graph, Operation, Value
from t2n_core.nnef.legality import required_extensions, signature_of
from t2n_core.nnef.signatures import Signature
from t2n_core.nnef.spec import Spec
from t2n_core.nnef.tract.sizes.printer import size_text

_PLAIN_STRING: Final = re.compile(r"[ !#-&(-\[\]-~]*")
"""Printable ASCII without quotes and backslash, which the targets read differently."""
_TEMPLATE: Final = re.compile(r"\{[{%#]|[}%#]\}")
"""tract runs the text of a graph through a template engine (liquid, from 0.23 minijinja), which acts on these."""
_PROPERTIES: Final = "fragment tract_core_properties() -> (properties: (string, tensor<scalar>)[])\n"
_ESCAPED: Final = "\"'\\{}%#"


def graph_text(graph: Graph, *, spec: Spec) -> str:
    """Return the content of `graph.nnef`.

    Raises WriteError, with the origin of the operation, for an argument that some version of the target reads
    differently (an infinity, a quote in a string, an expression of sizes that cannot be written), and SpecError for an
    operator that the target does not have.
    """
    return "\n".join(_lines(graph, spec)) + "\n"


def _lines(graph: Graph, spec: Spec) -> Iterator[str]:
    yield "version 1.0;"
    yield ""
    extensions = dict.fromkeys([*required_extensions(graph, spec), *graph.extensions])
    if extensions:
        yield from (f"extension {extension};" for extension in extensions)
        yield ""
    if graph.properties:
        yield from _properties(graph.properties)
    for fragment in graph.fragments.values():
        if _TEMPLATE.search(fragment.text):
            raise WriteError(f"the fragment `{fragment.name}` contains a sequence that tract takes for a template")
        yield fragment.text.strip("\n")
        yield ""
    inputs, outputs = (", ".join(v.name for v in values) for values in (graph.inputs, graph.outputs))
    yield f"graph {graph.name}({inputs}) -> ({outputs})"
    yield "{"
    signatures: dict[str, Signature] = {}
    for operation in graph.operations:
        if operation.name not in signatures:
            signatures[operation.name] = signature_of(graph, spec, operation.name)
        yield f"  {operation_text(operation, signatures[operation.name])};"
    yield "}"


def operation_text(operation: Operation, signature: Signature) -> str:
    """Return an operation as text, `y = conv(x, w, 0.0, stride = [2, 2])`: leading tensors by position, others by name.

    Raises WriteError as `graph_text` does.
    """
    parts = []
    positional = True
    try:
        for parameter in signature.parameters:
            argument = operation.arguments.get(parameter.name)
            positional = positional and parameter.is_tensor and argument is not None
            if argument is not None:
                text = argument_text(argument)
                parts.append(text if positional else f"{parameter.name} = {text}")
    except ValueError as wrong:
        message = f"`{operation.name}`: the argument `{parameter.name}` cannot be written: {wrong}"
        raise WriteError(message, origin=operation.origin, op=operation.name) from wrong
    unknown = [name for name in operation.arguments if signature.parameter(name) is None]
    if unknown:
        raise SpecError(signature.unknown_argument(unknown[0]), origin=operation.origin, op=operation.name)
    generic = f"<{operation.dtype}>" if operation.dtype else ""
    return f"{_results(operation, signature)} = {operation.name}{generic}({', '.join(parts)})"


def _results(operation: Operation, signature: Signature) -> str:
    names = [value.name for value in operation.outputs]
    if signature.results[0].is_array:
        return f"[{', '.join(names)}]"
    if len(names) != len(signature.results):
        message = f"`{operation.name}` has {len(signature.results)} results, {len(names)} are assigned"
        raise WriteError(message, origin=operation.origin, op=operation.name)
    return names[0] if len(names) == 1 else f"( {', '.join(names)} )"


def argument_text(argument: Any) -> str:
    """Return an argument as an NNEF expression. Raises ValueError for one that not every target version reads."""
    match argument:
        case Value():
            return argument.name
        case bool() | np.bool_():
            return "true" if argument else "false"
        case int() | np.integer():
            return _integer_text(int(argument))
        case float() | np.floating():
            return float_text(float(argument))
        case str():
            return _string_text(argument)
        case sympy.Expr():
            return size_text(argument)
        case list():
            return f"[{', '.join(argument_text(item) for item in argument)}]"
        case tuple() if len(argument) > 1:
            return f"({', '.join(argument_text(item) for item in argument)})"
    raise ValueError(f"{argument!r} of type {type(argument).__name__} cannot be expressed in NNEF")


def float_text(value: float) -> str:
    """Return the shortest decimal that float32 reads back as `value`, with a point or an exponent: `0.1`, `1.5e20`.

    Raises ValueError for infinities, NaN, and values out of float32's range: not every parser has literals for them.
    """
    with np.errstate(over="ignore"):
        single = np.float32(value)
    if not np.isfinite(single):
        raise ValueError(f"{value} is not a finite float32")
    if single == 0 or 1e-4 <= abs(single) < 1e16:
        return np.format_float_positional(single, trim="0")
    mantissa, exponent = np.format_float_scientific(single, trim="-").split("e")
    return f"{mantissa}e{int(exponent)}"  # tract 0.19 reads neither `e+20` nor a number without digits before the point


def _integer_text(value: int) -> str:
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{value} does not fit 64 bits")
    return str(value)


def _string_text(value: str) -> str:
    if not _PLAIN_STRING.fullmatch(value) or _TEMPLATE.search(value):
        raise ValueError(f"the string {value!r} has characters that versions read differently")
    return f'"{value}"'


def _properties(properties: Mapping[str, str]) -> Iterator[str]:
    """Yield tract's fragment of texts about the model, in which an escaped character is read as that character."""
    pairs = ", ".join(f"({_escape(key)}, {_escape(properties[key])})" for key in sorted(properties))
    yield f"{_PROPERTIES}{{\n  properties = [{pairs}];\n}}"
    yield ""


def _escape(text: str) -> str:
    return '"' + "".join(f"\\{letter}" if letter in _ESCAPED else letter for letter in text) + '"'
