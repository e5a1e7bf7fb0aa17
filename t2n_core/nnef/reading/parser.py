"""Parser of NNEF text: flat graphs, nested calls, fragments, symbolic sizes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from t2n_core.errors import InputError, SpecError
from t2n_core.nnef.reading.document import Argument, Assignment, Document, Expression, FragmentText, Name, names_in
from t2n_core.nnef.reading.document import value_text as text_of
from t2n_core.nnef.signatures import fragment_signature

_TOKEN: Final = re.compile(
    r"""(?P<number>\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)"""
    r"""|(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<name>[A-Za-z_]\w*)"""
    r"""|(?P<mark>->|<=|>=|==|!=|&&|\|\||[-+*/^<>=!(){}\[\],;:?])"""
)
_BLANK: Final = re.compile(r"(?:\s+|#[^\n]*)*")
_OPERATORS: Final = frozenset("+ - * / ^ < > <= >= == != && ||".split())
_OF_SIZES: Final = frozenset({"min", "max"})
"""Functions in expressions of sizes."""
_LITERALS: Final = {"true": True, "false": False}
_MOST_DIGITS: Final = 400
_LONGEST: Final = 64 << 20
"""Most characters of a text that is read."""


class _Token(NamedTuple):
    kind: str
    text: str
    start: int


class _Call(NamedTuple):
    """A call inside an expression, before it has a name."""

    operator: str
    dtype: str
    arguments: tuple[Argument, ...]


def read_text(text: str) -> Document:
    """Return the content of a `graph.nnef`. A call inside a call becomes a separate assignment.

    Raises InputError for text that is not NNEF, and for comprehensions, branches, and calls in sizes of the graph
    other than `min` and `max`.
    """
    if len(text) > _LONGEST:
        raise InputError(f"the text has {len(text)} characters, and at most {_LONGEST} are read")
    try:
        return _read_document(text)
    except RecursionError:
        raise InputError("the graph is nested too deeply") from None


def _read_document(text: str) -> Document:
    reader = _Reader(text)
    extensions: list[str] = []
    fragments: dict[str, FragmentText] = {}
    while not reader.at("graph"):
        if reader.at("version"):
            reader.skip_to(";")
        elif reader.at("extension"):
            start = reader.peek().start
            extensions.append(" ".join(text[start : reader.skip_to(";") - 1].split()[1:]))
        elif reader.at("fragment"):
            fragment = _read_fragment(reader, text)
            fragments[fragment.name] = fragment
        else:
            raise reader.wrong("`version`, `extension`, `fragment` or `graph` is expected")
    reader.take("graph")
    name = reader.name()
    inputs = reader.names_in_parentheses()
    reader.take("->")
    outputs = reader.names_in_parentheses()
    return Document(name, inputs, outputs, tuple(reader.body()), tuple(extensions), fragments)


def _read_fragment(reader: _Reader, text: str) -> FragmentText:
    start = reader.take("fragment").start
    name = reader.name()
    opening = reader.skip_to("{") - 1
    end = reader.skip_block()
    whole = text[start:end]
    try:
        signature = fragment_signature(name, whole)
    except SpecError as wrong:
        raise InputError(str(wrong)) from wrong
    body: tuple[Assignment, ...] | None
    try:
        body = tuple(_Reader(text[opening:end]).body())
    except InputError:
        body = None
    parameters, results = ([p.name for p in group] for group in (signature.parameters, signature.results))
    uses = frozenset(_operators_in(list(_tokens(text[opening:end]))))
    return FragmentText(name, whole, tuple(parameters), tuple(results), body, uses)


def _operators_in(tokens: Sequence[_Token]) -> Iterator[str]:
    """Yield the names that are called, `f(` or `f<scalar>(`, and those of the bodies of scans, `body = "f"`."""
    texts = [token.text for token in tokens]
    for place, token in enumerate(tokens):
        following = texts[place + 1 : place + 5]
        if token.kind == "name" and (
            following[:1] == ["("] or (following[:1] == ["<"] and following[2:] == [">", "("])
        ):
            yield token.text
        elif token.text == "body" and following[:1] == ["="] and tokens[place + 2].kind == "string":
            yield following[1][1:-1]


class _Reader:
    """A position in the tokens of a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_tokens(text))
        self._at = 0
        self._taken: set[str] = {token.text for token in self._tokens if token.kind == "name"}

    def peek(self) -> _Token:
        if self._at >= len(self._tokens):
            raise InputError("the text ends too early")
        return self._tokens[self._at]

    def at(self, text: str) -> bool:
        token = self.peek()
        return token.text == text and token.kind != "string"

    def wrong(self, expected: str) -> InputError:
        token = self.peek()
        line = self._text.count("\n", 0, token.start) + 1
        return InputError(f"line {line} of the graph: {expected}, not {token.text[:40]!r}")

    def take(self, text: str) -> _Token:
        if not self.at(text):
            raise self.wrong(f"`{text}` is expected")
        self._at += 1
        return self._tokens[self._at - 1]

    def name(self) -> str:
        token = self.peek()
        if token.kind != "name":
            raise self.wrong("a name is expected")
        self._at += 1
        return token.text

    def names_in_parentheses(self) -> tuple[str, ...]:
        self.take("(")
        return tuple(self._list(")", self.name))

    def skip_to(self, text: str) -> int:
        """Skip to the end of the next such token, and return its position in the text."""
        while not self.at(text):
            self._at += 1
        token = self.take(text)
        return token.start + len(token.text)

    def skip_block(self) -> int:
        """Skip the rest of a block in braces, and return the position of its end in the text."""
        while not self.at("}"):
            self._at += 1
        return self.take("}").start + 1

    def body(self) -> Iterator[Assignment]:
        """Yield the assignments in braces."""
        self.take("{")
        while not self.at("}"):
            yield from self._assignment()
        self.take("}")

    def _assignment(self) -> Iterator[Assignment]:
        is_list = self.at("[")
        if is_list or self.at("("):
            closing = "]" if is_list else ")"
            self._at += 1
            results = tuple(self._list(closing, self.name))
        else:
            results = tuple(self._names_without_parentheses())
        self.take("=")
        assignments: list[Assignment] = []
        value = self._expression()
        self.take(";")
        if isinstance(value, _Call):
            arguments = self._flat(value.arguments, assignments)
            assignments.append(Assignment(results, value.operator, arguments, value.dtype, is_list))
        elif isinstance(value, Name) and len(results) == 1:
            assignments.append(Assignment(results, "copy", (Argument("", value),)))
        else:
            raise InputError(f"`{results[0]}` is assigned an expression that is not a call")
        yield from assignments

    def _names_without_parentheses(self) -> Iterator[str]:
        yield self.name()
        while self.at(","):
            self.take(",")
            yield self.name()

    def _flat(self, arguments: Sequence[Argument], assignments: list[Assignment]) -> tuple[Argument, ...]:
        """Return arguments with names in place of calls, whose assignments are appended to `assignments`."""

        def flat(value: Any) -> Any:
            if isinstance(value, _Call):
                inner = self._flat(value.arguments, assignments)
                name = self._fresh_name(value.operator)
                assignments.append(Assignment((name,), value.operator, inner, value.dtype))
                return Name(name)
            if isinstance(value, list):
                return [flat(item) for item in value]
            return tuple(flat(item) for item in value) if type(value) is tuple else value

        return tuple(Argument(one.name, flat(one.value)) for one in arguments)

    def _fresh_name(self, base: str) -> str:
        number = 0
        while (name := f"{base}_{number}") in self._taken:
            number += 1
        self._taken.add(name)
        return name

    def _list(self, closing: str, item: Callable[[], Any]) -> list[Any]:
        items = []
        while not self.at(closing):
            items.append(item())
            if not self.at(closing):
                self.take(",")
        self.take(closing)
        return items

    def _expression(self) -> Any:
        """Read operands with operators between them; more than one operand is kept as text."""
        parts: list[str] = []
        names: list[Name] = []
        while True:
            value = self._operand()
            if self.peek().text not in _OPERATORS or self.peek().kind != "mark":
                if not parts:
                    return value
                parts.append(_operand_text(value))
                return Expression(" ".join(parts), tuple(dict.fromkeys([*names, *_names_in(value)])))
            names += _names_in(value)
            parts += [_operand_text(value), self.peek().text]
            self._at += 1

    def _operand(self) -> Any:
        token = self.peek()
        self._at += 1
        if token.kind == "number":
            if len(token.text) > _MOST_DIGITS:
                raise InputError(f"the graph has a number of {len(token.text)} digits")
            return float(token.text) if re.search(r"[.eE]", token.text) else int(token.text)
        if token.kind == "string":
            return token.text[1:-1]
        if token.kind == "name":
            if token.text in _LITERALS:
                return _LITERALS[token.text]
            return self._call(token.text) if self.at("(") or (self.at("<") and self._is_generic()) else Name(token.text)
        if token.text == "-":
            value = self._operand()
            if isinstance(value, int | float):
                return -value
            return Expression(f"0 - {_operand_text(value)}", tuple(names_in(value)))
        if token.text == "[":
            return self._list("]", self._expression)
        if token.text == "(":
            items = self._list(")", self._expression)
            if len(items) != 1:
                return tuple(items)
            if isinstance(items[0], Expression):
                return Expression(f"( {items[0].text} )", items[0].names)
            return items[0]
        self._at -= 1
        raise self.wrong("a value is expected")

    def _is_generic(self) -> bool:
        following = self._tokens[self._at : self._at + 4]
        return [t.text for t in following][2:] == [">", "("] and following[1].kind == "name"

    def _call(self, operator: str) -> _Call:
        dtype = ""
        if self.at("<"):
            self.take("<")
            dtype = self.name()
            self.take(">")
        self.take("(")
        return _Call(operator, dtype, tuple(self._list(")", self._argument)))

    def _argument(self) -> Argument:
        named = self.peek().kind == "name" and self._tokens[self._at + 1].text == "="
        name = self.name() if named else ""
        if named:
            self.take("=")
        return Argument(name, self._expression())


def _operand_text(value: Any) -> str:
    if isinstance(value, _Call) and value.operator in _OF_SIZES:
        return f"{value.operator} ( {' , '.join(_operand_text(one.value) for one in value.arguments)} )"
    if isinstance(value, _Call):
        raise InputError(f"the call of `{value.operator}` is part of an expression")
    return value.text if isinstance(value, Expression) else text_of(value)


def _names_in(value: Any) -> Iterator[Name]:
    """Yield the names in an operand of an expression, also in a call."""
    if isinstance(value, _Call):
        for one in value.arguments:
            yield from _names_in(one.value)
    yield from names_in(value)


def _tokens(text: str) -> Iterator[_Token]:
    position = 0
    while True:
        blank = _BLANK.match(text, position)
        position = blank.end() if blank else position
        if position >= len(text):
            return
        found = _TOKEN.match(text, position)
        if found is None:
            line = text.count("\n", 0, position) + 1
            raise InputError(f"line {line} of the graph: {text[position : position + 20]!r} is not NNEF")
        yield _Token(str(found.lastgroup), found[0], position)
        position = found.end()
