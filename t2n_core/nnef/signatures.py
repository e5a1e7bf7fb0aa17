"""Signatures of NNEF operators, and their parser."""

from __future__ import annotations

import ast
import enum
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from t2n_core.errors import SpecError


class _Required(enum.Enum):
    REQUIRED = "required"

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required.REQUIRED
"""The default of a required parameter."""

_WORDS: Final = {"true": True, "false": False, "none": None, "inf": math.inf, "-inf": -math.inf}
_PARAMETER: Final = re.compile(r"(?P<name>\w+)\s*:\s*(?P<type>[^=]+?)(?:\s*=\s*(?P<default>.+))?")
COMMENT: Final = re.compile(r"#[^\n]*")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter or result of an operator."""

    name: str
    type: str
    """As in the standard: `tensor<scalar>`, `tensor<?>[]`, `integer[]`, `(integer,integer)[]`, `logical`, `string`."""
    default: Any = REQUIRED
    """A Python value; None for a parameter that may be omitted and whose default cannot be written."""

    @property
    def is_tensor(self) -> bool:
        return self.type.startswith("tensor<")

    @property
    def is_array(self) -> bool:
        return self.type.endswith("[]")


@dataclass(frozen=True, slots=True)
class Signature:
    """One operator of one target version."""

    name: str
    parameters: tuple[Parameter, ...]
    results: tuple[Parameter, ...]
    registry: str
    """`tract_nnef` for tract's standard library, `tract_core`, `tract_extra`, …; empty for khronos and fragments."""
    broken: str = ""
    """Reason why this operator must never be written although its name resolves; empty if it works."""

    def parameter(self, name: str) -> Parameter | None:
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        return None

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments by name, in the order of the signature, without optional arguments that were not passed.

        Raises SpecError for an unknown, missing or duplicate argument.
        """
        if len(args) > len(self.parameters):
            wrong = f"`{self.name}` takes {len(self.parameters)} arguments, {len(args)} were passed"
            raise SpecError(wrong, op=self.name)
        bound = {p.name: value for p, value in zip(self.parameters, args, strict=False)}
        for name, value in kwargs.items():
            if name in bound:
                raise SpecError(f"`{self.name}` got the argument `{name}` twice", op=self.name)
            if self.parameter(name) is None:
                raise SpecError(self.unknown_argument(name), op=self.name)
            bound[name] = value
        missing = self.missing(bound)
        if missing:
            raise SpecError(f"`{self.name}` needs the argument `{'`, `'.join(missing)}`", op=self.name)
        return {p.name: bound[p.name] for p in self.parameters if p.name in bound}

    def missing(self, arguments: Mapping[str, Any]) -> list[str]:
        """Return the names of required parameters that are not in `arguments`."""
        return [p.name for p in self.parameters if p.default is REQUIRED and p.name not in arguments]

    def unknown_argument(self, name: str) -> str:
        return f"`{self.name}` has no argument `{name}`; it takes {', '.join(f'`{p.name}`' for p in self.parameters)}"


def parse_parameters(text: str) -> tuple[Parameter, ...]:
    """Return the parameters of `x: tensor<scalar>, axis: integer = 0`; `= none` marks a parameter that may be omitted.

    Raises ValueError for text that is not a parameter list.
    """
    parameters = []
    for part in _split(text):
        match = _PARAMETER.fullmatch(part)
        if match is None:
            raise ValueError(f"not a parameter: {part!r}")
        default: Any = REQUIRED
        if match["default"] is not None:
            word = match["default"]
            default = _WORDS[word] if word in _WORDS else ast.literal_eval(word)
        parameters.append(Parameter(match["name"], re.sub(r"\s", "", match["type"]), default))
    return tuple(parameters)


def fragment_signature(name: str, text: str) -> Signature:
    """Return the signature that a fragment declares in its text.

    Raises SpecError if the text does not declare a fragment of that name.
    """
    plain = COMMENT.sub("", text)
    head = re.search(rf"\bfragment\s+{re.escape(name)}\s*(?:<[^>]*>)?\s*\(", plain)
    if head is None:
        raise SpecError(f"the text of the fragment `{name}` does not declare it", op=name)
    parameters, end = _in_parentheses(plain, head.end())
    arrow = re.compile(r"\s*->\s*\(").match(plain, end)
    if arrow is None:
        raise SpecError(f"the fragment `{name}` declares no results", op=name)
    results, _ = _in_parentheses(plain, arrow.end())
    try:
        return Signature(name, parse_parameters(parameters), parse_parameters(results), registry="")
    except (ValueError, SyntaxError) as wrong:
        raise SpecError(f"the declaration of the fragment `{name}` cannot be read: {wrong}", op=name) from wrong


def _in_parentheses(text: str, start: int) -> tuple[str, int]:
    """Return the text from `start`, just after a parenthesis, to its closing one, and the position after that."""
    depth = 1
    for position in range(start, len(text)):
        depth += (text[position] == "(") - (text[position] == ")")
        if not depth:
            return text[start:position], position + 1
    return text[start:], len(text)


def _split(text: str) -> list[str]:
    """Return the parts between top-level commas."""
    parts, depth, start = [], 0, 0
    for position, letter in enumerate(text):
        depth += (letter in "([<") - (letter in ")]>")
        if letter == "," and not depth:
            parts.append(text[start:position].strip())
            start = position + 1
    return [*parts, text[start:].strip()] if text.strip() else []
