"""Names and literals in NNEF's text, limited to what the parsers of all targets read in the same way."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np

_FORM: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NO_LETTER: Final = re.compile(r"[^A-Za-z0-9_]")
_MISREAD: Final = ("true", "false", "inf")
"""tract reads these as a literal wherever an expression starts with them: `true_value` and `info` are parse errors
(for `inf` from 0.20.22 at the latest)."""
_TYPES: Final = frozenset({"tensor", "integer", "scalar", "logical", "string", "true", "false"})
_GRAMMAR: Final = frozenset({"version", "extension", "graph", "fragment", "for", "in", "if", "else", "yield"})
KEYWORDS: Final = _TYPES | _GRAMMAR | {"shape_of", "length_of", "range_of"}
"""Reserved by the Khronos parser."""
_PLAIN_STRING: Final = re.compile(r"[ !#-&(-\[\]-~]*")
"""Printable ASCII without quotes and backslash, which the targets read differently."""
TEMPLATE: Final = re.compile(r"\{[{%#]|[}%#]\}")
"""tract runs the text of a graph through a template engine (liquid, from 0.23 minijinja), which acts on these."""


def identifier_problem(name: str) -> str | None:
    """Return why `name` cannot name a value, graph or fragment in every version of every target; None if it can."""
    if not _FORM.fullmatch(name):
        return f"`{name}` is not an identifier (ASCII letters, digits and `_`, not starting with a digit)"
    if name in KEYWORDS:
        return f"`{name}` is a keyword of NNEF"
    for word in _MISREAD:
        if name.startswith(word):
            return f"`{name}` starts with `{word}`, which tract's parser takes for a literal"
    return None


def plain_identifier(name: str) -> str:
    """Return a name with `_` for each character that an identifier cannot have, as tract does where it writes names."""
    plain = _NO_LETTER.sub("_", name)
    return plain if _FORM.match(plain) else f"_{plain}"


def cannot_be_expressed(value: Any) -> ValueError:
    """Return the error for a value that has no literal."""
    return ValueError(f"{value!r} of type {type(value).__name__} cannot be expressed in NNEF")


def literal_text(value: Any, other_text: Callable[[Any], str] | None = None) -> str:
    """Return a boolean, number or string, or a list or tuple of them, as text.

    `other_text` writes items of other types. Raises ValueError for a value that not every target version reads.
    """
    match value:
        case bool() | np.bool_():
            return "true" if value else "false"
        case int() | np.integer():
            return _integer_text(int(value))
        case float() | np.floating():
            return float_text(float(value))
        case str():
            return _string_text(value)
        case list():
            return f"[{', '.join(literal_text(item, other_text) for item in value)}]"
        case tuple() if len(value) > 1:
            return f"({', '.join(literal_text(item, other_text) for item in value)})"
    if other_text is None:
        raise cannot_be_expressed(value)
    return other_text(value)


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
