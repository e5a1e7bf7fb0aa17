"""Writer of a graph as NNEF text: one operation per line, the same text for the same graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from t2n_core.errors import WriteError
from t2n_core.nnef.graph import Graph, Operation
from t2n_core.nnef.legality import required_extensions, signature_of
from t2n_core.nnef.lexical import TEMPLATE
from t2n_core.nnef.operation_text import write_argument, write_operation
from t2n_core.nnef.signatures import Signature
from t2n_core.nnef.spec import Spec
from t2n_core.nnef.tract.sizes.printer import size_text

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
        if TEMPLATE.search(fragment.text):
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
    """Return an operation as text, with sizes in tract's syntax. Raises like `graph_text`."""
    return write_operation(operation, signature, size_text)


def argument_text(argument: Any) -> str:
    """Return an argument as an NNEF expression. Raises ValueError if not every target version reads it."""
    return write_argument(argument, size_text)


def _properties(properties: Mapping[str, str]) -> Iterator[str]:
    """Yield tract's fragment of texts about the model, in which an escaped character is read as that character."""
    pairs = ", ".join(f"({_escape(key)}, {_escape(properties[key])})" for key in sorted(properties))
    yield f"{_PROPERTIES}{{\n  properties = [{pairs}];\n}}"
    yield ""


def _escape(text: str) -> str:
    return '"' + "".join(f"\\{letter}" if letter in _ESCAPED else letter for letter in text) + '"'
