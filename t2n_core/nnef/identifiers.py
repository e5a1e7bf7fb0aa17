"""Check of the names in a graph: NNEF allows more names than the parsers of the targets can read."""

from __future__ import annotations

import re
from typing import Final

_FORM: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MISREAD: Final = ("true", "false", "inf")
"""tract reads these as a literal wherever an expression starts with them: `true_value` and `info` are parse errors
(for `inf` from 0.20.22 at the latest)."""
_TYPES: Final = frozenset({"tensor", "integer", "scalar", "logical", "string", "true", "false"})
_GRAMMAR: Final = frozenset({"version", "extension", "graph", "fragment", "for", "in", "if", "else", "yield"})
KEYWORDS: Final = _TYPES | _GRAMMAR | {"shape_of", "length_of", "range_of"}
"""Reserved by the Khronos parser."""


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
