"""The text of one operation. How a size is written is the caller's: the standard has no expressions of sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import sympy

from t2n_core.errors import SpecError, WriteError
from t2n_core.nnef.graph import Operation, Value
from t2n_core.nnef.lexical import cannot_be_expressed, literal_text
from t2n_core.nnef.signatures import Signature
from t2n_core.nnef.sizes.dims import Dim

SizeText: TypeAlias = Callable[[Dim], str]
"""Returns the text of a size. Raises ValueError for a size that cannot be written."""


def write_operation(operation: Operation, signature: Signature, size_text: SizeText) -> str:
    """Return an operation as text, `y = conv(x, w, 0.0, stride = [2, 2])`: leading tensors by position, others by name.

    Raises WriteError and SpecError as `graph_text` does.
    """
    parts = []
    positional = True
    try:
        for parameter in signature.parameters:
            argument = operation.arguments.get(parameter.name)
            positional = positional and parameter.is_tensor and argument is not None
            if argument is not None:
                text = write_argument(argument, size_text)
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


def write_argument(argument: Any, size_text: SizeText) -> str:
    """Return an argument as an NNEF expression. Raises ValueError if not every target version reads it."""

    def other_text(item: Any) -> str:
        if isinstance(item, Value):
            return item.name
        if isinstance(item, sympy.Expr):
            return size_text(item)
        raise cannot_be_expressed(item)

    return literal_text(argument, other_text)
