"""The text of one operation. How a size is written is the caller's: the standard has no expressions of sizes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
import sympy

from t2n_core.errors import SpecError, WriteError
from t2n_core.nnef.graph import Operation, Value
from t2n_core.nnef.signatures import Signature
from t2n_core.nnef.sizes.dims import Dim

SizeText: TypeAlias = Callable[[Dim], str]
"""Returns the text of a size. Raises ValueError for one that cannot be written."""
_PLAIN_STRING: Final = re.compile(r"[ !#-&(-\[\]-~]*")
"""Printable ASCII without quotes and backslash, which the targets read differently."""
TEMPLATE: Final = re.compile(r"\{[{%#]|[}%#]\}")
"""tract runs the text of a graph through a template engine (liquid, from 0.23 minijinja), which acts on these."""


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
            return f"[{', '.join(write_argument(item, size_text) for item in argument)}]"
        case tuple() if len(argument) > 1:
            return f"({', '.join(write_argument(item, size_text) for item in argument)})"
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
    if not _PLAIN_STRING.fullmatch(value) or TEMPLATE.search(value):
        raise ValueError(f"the string {value!r} has characters that versions read differently")
    return f'"{value}"'
