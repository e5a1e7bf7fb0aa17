"""Parser of NNEF's expressions, and of the bodies of fragments, into a tree."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from t2n_core.errors import InputError
from t2n_core.nnef.reading.document import Assignment, Expression
from t2n_core.nnef.reading.document import Name as TextName

_TOKEN: Final = re.compile(
    r"""(?P<blank>(?:\s|\#[^\n]*)+)|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"""
    r"""|(?P<string>"[^"]*"|'[^']*')|(?P<name>[A-Za-z_]\w*)"""
    r"""|(?P<mark><=|>=|==|!=|&&|\|\||[-+*/^<>!=()\[\]{},;:?])"""
)
_LEVELS: Final = (("||",), ("&&",), ("<", ">", "<=", ">=", "==", "!=", "in"), ("+", "-"), ("*", "/"), ("^",))
"""Binary operators, those that bind least first."""
_WORDS: Final = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that stands in the text."""

    value: Any


@dataclass(frozen=True, slots=True)
class Name:
    """The name of a value or a symbol."""

    name: str


@dataclass(frozen=True, slots=True)
class Items:
    """A list, or a tuple."""

    items: tuple[Node, ...]
    is_list: bool


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an operator or a fragment; positional arguments have an empty name."""

    operator: str
    dtype: str
    arguments: tuple[tuple[str, Node], ...]


@dataclass(frozen=True, slots=True)
class Operator:
    """One or two operands with an operator, such as `x + y` or `!x`."""

    mark: str
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Conditional:
    """`chosen if condition else other`; only one of them is evaluated."""

    condition: Node
    chosen: Node
    other: Node


@dataclass(frozen=True, slots=True)
class Subscript:
    """`items[first]`, or with a colon `items[first:last]`."""

    items: Node
    first: Node | None
    last: Node | None
    is_range: bool


@dataclass(frozen=True, slots=True)
class Comprehension:
    """`[for x in xs, y in ys if condition yield item]`; the lists are gone through together."""

    loops: tuple[tuple[str, Node], ...]
    condition: Node | None
    item: Node


Node: TypeAlias = Literal | Name | Items | Call | Operator | Conditional | Subscript | Comprehension


@dataclass(frozen=True, slots=True)
class Statement:
    """One assignment: the names on its left, and the expression."""

    results: tuple[str, ...]
    is_list: bool
    value: Node
    text: str


def statement_of(assignment: Assignment) -> Statement:
    """Return an assignment of a graph as a statement. Raises InputError for an expression that cannot be parsed."""
    arguments = tuple((one.name, node_of(one.value)) for one in assignment.arguments)
    call = Call(assignment.operator, assignment.dtype, arguments)
    return Statement(assignment.results, assignment.is_list, call, assignment.text())


def node_of(value: Any) -> Node:
    """Return an argument of an assignment as a tree."""
    if isinstance(value, TextName):
        return Name(value)
    if isinstance(value, Expression):
        return parse_expression(value.text)
    if isinstance(value, list | tuple):
        return Items(tuple(map(node_of, value)), isinstance(value, list))
    return Literal(value)


def parse_expression(text: str) -> Node:
    """Return the tree of an expression. Raises InputError."""
    reader = _Reader(text)
    found = reader.expression()
    reader.end()
    return found


def parse_body(text: str) -> tuple[Statement, ...]:
    """Return the statements of a fragment, from its whole text. Raises InputError."""
    return _Reader(text[text.index("{") :]).body()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, str, int]] = []
        position = 0
        while position < len(text):
            found = _TOKEN.match(text, position)
            if found is None:
                raise InputError(f"{text[position : position + 20]!r} is not NNEF")
            if found.lastgroup != "blank":
                self._tokens.append((str(found.lastgroup), found[0], position))
            position = found.end()
        self._tokens.append(("end", "", position))
        self._at = 0

    def at(self, *marks: str) -> bool:
        kind, text, _ = self._tokens[self._at]
        return text in marks and kind in ("mark", "name")

    def take(self, *marks: str) -> str:
        kind, text, _ = self._tokens[self._at]
        if (marks and not self.at(*marks)) or (not marks and kind != "name"):
            raise InputError(f"`{' or '.join(marks) or 'a name'}` is expected, not {text[:40]!r}")
        self._at += 1
        return text

    def end(self) -> None:
        if self._tokens[self._at][0] != "end":
            raise InputError(f"{self._tokens[self._at][1][:40]!r} is not expected here")

    def several(self, closing: str, item: Callable[[], Any]) -> list[Any]:
        found = []
        while not self.at(closing):
            found.append(item())
            if not self.at(closing):
                self.take(",")
        self.take(closing)
        return found

    def body(self) -> tuple[Statement, ...]:
        self.take("{")
        found = []
        while not self.at("}"):
            start = self._tokens[self._at][2]
            results, is_list = self._results()
            self.take("=")
            value = self.expression()
            self.take(";")
            text = self._text[start : self._tokens[self._at - 1][2]]
            found.append(Statement(results, is_list, value, " ".join(text.split())))
        return tuple(found)

    def _results(self) -> tuple[tuple[str, ...], bool]:
        if self.at("[", "("):
            closing = {"[": "]", "(": ")"}[self.take("[", "(")]
            return tuple(self.several(closing, self.take)), closing == "]"
        names = [self.take()]
        while self.at(","):
            self.take(",")
            names.append(self.take())
        return tuple(names), False

    def expression(self) -> Node:
        chosen = self._binary(0)
        if not self.at("if"):
            return chosen
        self.take("if")
        condition = self.expression()
        self.take("else")
        return Conditional(condition, chosen, self.expression())

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while self.at(*_LEVELS[level]):
            left = Operator(self.take(*_LEVELS[level]), (left, self._binary(level + 1)))
        return left

    def _unary(self) -> Node:
        if self.at("-", "+", "!"):
            mark, operand = self.take("-", "+", "!"), self._unary()
            if mark == "-" and isinstance(operand, Literal):
                return Literal(-operand.value)
            return operand if mark == "+" else Operator(mark, (operand,))
        found = self._atom()
        while self.at("["):
            found = self._subscript(found)
        return found

    def _subscript(self, items: Node) -> Node:
        self.take("[")
        first = None if self.at(":") else self.expression()
        if not self.at(":"):
            self.take("]")
            return Subscript(items, first, None, False)
        self.take(":")
        last = None if self.at("]") else self.expression()
        self.take("]")
        return Subscript(items, first, last, True)

    def _atom(self) -> Node:
        kind, text, _ = self._tokens[self._at]
        self._at += 1
        if kind == "number":
            return Literal(float(text) if set(text) & set(".eE") else int(text))
        if kind == "string":
            return Literal(text[1:-1])
        if kind == "name":
            if text in _WORDS:
                return Literal(_WORDS[text])
            return self._call(text) if self.at("(") or self._is_generic() else Name(text)
        if text == "[":
            if self.at("for"):
                return self._comprehension()
            return Items(tuple(self.several("]", self.expression)), True)
        if text == "(":
            items = self.several(")", self.expression)
            return items[0] if len(items) == 1 else Items(tuple(items), False)
        raise InputError(f"a value is expected, not {text[:40]!r}")

    def _is_generic(self) -> bool:
        following = [text for _, text, _ in self._tokens[self._at : self._at + 4]]
        return following[:1] == ["<"] and following[2:] == [">", "("]

    def _call(self, operator: str) -> Node:
        dtype = ""
        if self.at("<"):
            self.take("<")
            dtype = self.take()
            self.take(">")
        self.take("(")
        return Call(operator, dtype, tuple(self.several(")", self._argument)))

    def _argument(self) -> tuple[str, Node]:
        following = self._tokens[self._at + 1][1]
        name = ""
        if self._tokens[self._at][0] == "name" and following == "=":
            name = self.take()
            self.take("=")
        return name, self.expression()

    def _comprehension(self) -> Node:
        self.take("for")
        loops: list[tuple[str, Node]] = []
        while not loops or self.at(","):
            if loops:
                self.take(",")
            name = self.take()
            self.take("in")
            loops.append((name, self._binary(0)))
        condition = None
        if self.at("if"):
            self.take("if")
            condition = self._binary(0)
        self.take("yield")
        item = self.expression()
        self.take("]")
        return Comprehension(tuple(loops), condition, item)


def names_in(node: Node | None) -> set[str]:
    """Return all names in a tree."""
    if isinstance(node, Name):
        return {node.name}
    parts: Sequence[Node | None] = ()
    if isinstance(node, Items):
        parts = node.items
    elif isinstance(node, Call):
        parts = [value for _, value in node.arguments]
    elif isinstance(node, Operator):
        parts = node.operands
    elif isinstance(node, Conditional):
        parts = (node.condition, node.chosen, node.other)
    elif isinstance(node, Subscript):
        parts = (node.items, node.first, node.last)
    elif isinstance(node, Comprehension):
        parts = (*(values for _, values in node.loops), node.condition, node.item)
    return set().union(*map(names_in, parts))
