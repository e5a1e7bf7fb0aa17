"""Operators that the Rust source of a release declares, with the signatures that its library does not state.

A release's source is its sdist on the index. Declarations whose names are put together by a macro are not read.
"""

from __future__ import annotations

import itertools
import re
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from t2n_core.errors import InputError

_REGISTRATION: Final = re.compile(r"register_(primitive|unit_element_wise|element_wise|binary)\(")
_LITERAL: Final = re.compile(r'"(\w+)"')
_TYPE: Final = re.compile(r"TypeName::(\w+)")
_METHOD: Final = re.compile(r"\.(\w+)\(")
_COMMENT: Final = re.compile(r"//[^\n]*")
_SUFFIX: Final = re.compile(r"(?<=\d)_?[fiu](8|16|32|64|size)$")
_OPTIONAL: Final = re.compile(
    r'\bget_named_arg\w*(?:::<[^(]*>)?\((?:builder,\s*)?"(\w+)"|\bnamed_arg_as\(builder,\s*"(\w+)"\)\.ok\(\)'
)
_RESULT: Final = re.compile(r'\(\s*"(\w+)"\s*,(.*)\)', re.DOTALL)
_UNARY, _BINARY = "x: tensor<scalar>", "x: tensor<scalar>, y: tensor<scalar>"
_OPENING, _CLOSING = "([{", ")]}"


class Declaration(NamedTuple):
    """How a source declares an operator, in the columns of the spec table."""

    kind: str
    """`primitive`, `binary`, `element_wise` or `unit_element_wise`."""
    parameters: str
    results: str


def read_declarations(source: Path) -> dict[str, Declaration]:
    """Return the declaration of each operator in a folder or an sdist (`.tar.gz`).

    Raises InputError for a file that is no archive.
    """
    declared: dict[str, Declaration] = {}
    for text in _rust_files(source):
        plain = _COMMENT.sub("", text)
        for match in _REGISTRATION.finditer(plain):
            arguments = _split(_balanced(plain, match.end() - 1))
            name = _LITERAL.fullmatch(arguments[0]) if arguments else None
            if name is not None:
                declared[name[1]] = _declaration(match[1], arguments, plain)
    return declared


def source_of(release: str, sources: Sequence[Path]) -> Path | None:
    """Return the folder or sdist `tract-RELEASE` among some, or None."""
    return next((path for path in sources if path.name.removesuffix(".tar.gz") == f"tract-{release}"), None)


def _rust_files(source: Path) -> Iterator[str]:
    if source.is_dir():
        for path in sorted(source.rglob("*.rs")):
            yield path.read_text("utf-8", "replace")
        return
    try:
        with tarfile.open(source) as archive:
            for member in archive:
                if member.name.endswith(".rs") and (file := archive.extractfile(member)) is not None:
                    yield file.read().decode("utf-8", "replace")
    except tarfile.TarError as cause:
        raise InputError(f"{source} is no sdist of tract: {cause}") from cause


def _declaration(kind: str, arguments: list[str], file: str) -> Declaration:
    if kind == "binary":
        return Declaration(kind, _BINARY, "z: tensor<scalar>")
    if kind == "unit_element_wise":
        return Declaration(kind, _UNARY, "y: tensor<scalar>")
    text = arguments[1 if kind == "primitive" else 3]
    if call := re.fullmatch(r"&?(\w+)\(\)", text):  # a function of the same file returns them
        body = re.search(rf"fn {call[1]}\(\)[^{{]*", file)
        text = _balanced(file, body.end()) if body else ""
    optional = set(itertools.chain.from_iterable(_OPTIONAL.findall(file)))
    parameters = ", ".join(_parameter(part, optional) for part in _elements(text))
    results = ", ".join(map(_result, _elements(arguments[2]))) if kind == "primitive" else "output: tensor<scalar>"
    return Declaration(kind, parameters, results)


def _elements(text: str) -> list[str]:
    """Return the elements of the first array in a text."""
    begin = text.find("[")
    return _split(_balanced(text, begin)) if begin >= 0 else []


def _parameter(text: str, optional: set[str]) -> str:
    """Return `TypeName::Integer.named("skip").default(0)` as `skip: integer = 0`."""
    type_, name, default = _type(text)
    return f"{name}: {type_}{default or (' = none' if name in optional else '')}"


def _result(text: str) -> str:
    """Return `("output", TypeName::Scalar.tensor())` as `output: tensor<scalar>`."""
    match = _RESULT.fullmatch(text)
    return f"{match[1]}: {_type(match[2])[0]}" if match else "output: tensor<scalar>"


def _type(text: str) -> tuple[str, str, str]:
    """Return the type, and the name and the default if it has them."""
    name = default = ""
    if (begin := text.find("Tuple(")) >= 0:
        inner = _balanced(text, begin + len("Tuple"))
        members = (_type(part)[0] for part in _elements(inner))
        type_, rest = f"({', '.join(members)})", text[begin + len("Tuple") + len(inner) + 2 :]
    else:
        base = _TYPE.search(text)
        word = base[1].lower() if base else "?"
        type_, rest = "?" if word == "any" else word, text[base.end() :] if base else ""
    for method in _METHOD.finditer(rest):
        argument = _balanced(rest, method.end() - 1)
        if method[1] == "tensor":
            type_ = f"tensor<{type_}>"
        elif method[1] == "array":
            type_ = f"{type_}[]"
        elif method[1] == "named":
            name = argument.strip('"')
        elif method[1] == "default":
            default = f" = {_SUFFIX.sub('', argument)}"
    return type_, name, default


def _balanced(text: str, begin: int) -> str:
    """Return the text between the bracket at `begin` and its closing bracket."""
    depth, is_text = 0, False
    for at in range(begin, len(text)):
        letter = text[at]
        if letter == '"' and text[at - 1] != "\\":
            is_text = not is_text
        elif not is_text:
            depth += (letter in _OPENING) - (letter in _CLOSING)
            if not depth:
                return text[begin + 1 : at]
    return ""


def _split(text: str) -> list[str]:
    """Return the parts of a text between its outer commas."""
    parts, depth, is_text, begin = [], 0, False, 0
    for at, letter in enumerate(text):
        if letter == '"' and text[at - 1] != "\\":
            is_text = not is_text
        elif not is_text:
            depth += (letter in _OPENING) - (letter in _CLOSING)
            if letter == "," and not depth:
                parts.append(text[begin:at])
                begin = at + 1
    return [part.strip() for part in (*parts, text[begin:]) if part.strip()]
