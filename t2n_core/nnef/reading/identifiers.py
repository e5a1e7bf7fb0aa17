"""Quoted identifiers, `i"y.out"`, which tract has in addition to the standard's."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Final

from t2n_core.nnef.lexical import identifier_problem, plain_identifier

_PART: Final = re.compile(
    r"""\#[^\n]*|i(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|(?P<word>\w+)""",
    re.DOTALL,
)
QUOTED: Final = r'i"(?:[^"\\]|\\.)*"'
"""A quoted identifier, for regular expressions."""
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)


def unquote(text: str) -> str:
    """Return the content of a string or a quoted identifier, in which a backslash stands before any character."""
    return _ESCAPE.sub(r"\1", text[1:-1])


def name_of(identifier: str) -> str:
    """Return the name that a plain or a quoted identifier stands for."""
    return unquote(identifier[1:]) if identifier.startswith('i"') else identifier


def with_plain_identifiers(text: str) -> str:
    """Return the text of a graph with each quoted identifier replaced by a distinct plain one.

    A plain one is the name with `_` for all other characters, and with a number if the text already has that word.
    """
    if 'i"' not in text and "i'" not in text:
        return text
    used_names = {part["word"] for part in _PART.finditer(text) if part["word"]}
    names: dict[str, str] = {}
    numbered: dict[str, Iterator[str]] = {}

    def unused(name: str) -> str:
        if identifier_problem(name) is not None:
            name = f"_{name}"
        if name not in used_names:
            return name
        others = numbered.setdefault(name, map(f"{name}_{{}}".format, itertools.count()))
        return next(other for other in others if other not in used_names)

    def plain(part: re.Match[str]) -> str:
        if part["quoted"] is None:
            return part[0]
        name = unquote(part["quoted"])
        if name not in names:
            names[name] = name if identifier_problem(name) is None else unused(plain_identifier(name))
            used_names.add(names[name])
        return names[name]

    return _PART.sub(plain, text)
