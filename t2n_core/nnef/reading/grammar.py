"""Grammar of NNEF text: its tokens, expressions and assignments. Graphs, fragments and assertions are read by it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

from t2n_core.errors import InputError
from t2n_core.nnef.reading.identifiers import unquote
from t2n_core.nnef.reading.tree import (
    Call,
    Comprehension,
    Conditional,
    Items,
    Literal,
    Name,
    Node,
    Operator,
    Statement,
    Subscript,
)

_TOKEN: Final = re.compile(
    r"""(?>(?:\s+|\#[^\n]*)*)(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"""
    r"""|(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<name>[A-Za-z_]\w*)"""
    r"""|(?P<mark>->|<=|>=|==|!=|&&|\|\||[-+*/^<>=!(){}\[\],;:?])|(?P<end>\Z))"""
)
_BLANK: Final = re.compile(r"(?>(?:\s+|#[^\n]*)*)")
_LEVELS: Final = (("||",), ("&&",), ("<", ">", "<=", ">=", "==", "!=", "in"), ("+", "-"), ("*", "/"), ("^",))
_BINDING: Final = {mark: level for level, marks in enumerate(_LEVELS) for mark in marks}
"""Binary operators, which all group from the left -> how tightly they bind."""
_LITERALS: Final = {"true": True, "false": False, "inf": math.inf}
_MOST_DIGITS: Final = 400
_SHOWN: Final = 40
"""Most characters of a token in a message."""


class Token(NamedTuple):
    """A piece of the text."""

    kind: str
    """`number`, `string`, `name`, `mark`, or `end` after the last one."""
    text: str
    start: int


def parse_expression(text: str) -> Node:
    """Return the tree of an expression. Raises InputError."""
    reader = GrammarReader(text, "expression")
    expression = reader.expression()
    if reader.peek().kind != "end":
        raise reader.wrong("the end is expected")
    return expression


def parse_body(text: str) -> tuple[Statement, ...]:
    """Return the statements of a fragment, from its whole text. Raises InputError."""
    reader = GrammarReader(text, "fragment")
    reader.skip_before("{")
    return tuple(statement for statement, _ in reader.body())


class GrammarReader:
    """A position in the tokens of a text, from which the next part of the grammar is read.

    Every part raises InputError, with line and column, for text that is not NNEF. `kind` names the text in messages.
    """

    def __init__(self, text: str, kind: str = "graph") -> None:
        self._text = text
        self._kind = kind
        self._at = 0
        self.tokens = list(self._read_tokens())

    def _read_tokens(self) -> Iterator[Token]:
        position = 0
        while True:
            match = _TOKEN.match(self._text, position)
            if match is None:
                blank = _BLANK.match(self._text, position)
                start = blank.end() if blank else position
                raise self.error_at(start, f"{self._text[start : start + 20]!r} cannot be read as NNEF")
            kind = str(match.lastgroup)
            yield Token(kind, match[kind], match.start(kind))
            if kind == "end":
                return
            position = match.end()

    def error_at(self, position: int, message: str) -> InputError:
        """Return the error for a position in the text."""
        line = self._text.count("\n", 0, position) + 1
        column = position - self._text.rfind("\n", 0, position)
        return InputError(f"line {line}, column {column} of the {self._kind}: {message}")

    def wrong(self, expected: str) -> InputError:
        """Return the error for the next token, in whose place something else is expected."""
        token = self.peek()
        if token.kind == "end":
            return self.error_at(token.start, f"the text ends too early: {expected}")
        return self.error_at(token.start, f"{expected}, not {token.text[:_SHOWN]!r}")

    def peek(self) -> Token:
        return self.tokens[self._at]

    def at(self, *marks: str) -> bool:
        """Return whether the next token is one of these."""
        token = self.tokens[self._at]
        return token.text in marks and token.kind in ("mark", "name")

    def take(self, *marks: str) -> Token:
        """Return the next token, which is one of these."""
        if not self.at(*marks):
            raise self.wrong(f"`{'` or `'.join(marks)}` is expected")
        self._at += 1
        return self.tokens[self._at - 1]

    def name(self) -> str:
        token = self.peek()
        if token.kind != "name":
            raise self.wrong("a name is expected")
        self._at += 1
        return token.text

    def names_in_parentheses(self) -> tuple[str, ...]:
        self.take("(")
        return tuple(self._list(")", self.name))

    def skip_before(self, *marks: str) -> None:
        """Skip what comes before the next such token."""
        while not self.at(*marks):
            if self.peek().kind == "end":
                raise self.wrong(f"`{marks[0]}` is expected")
            self._at += 1

    def skip_to(self, mark: str) -> int:
        """Skip to the end of the next such token, and return its position in the text."""
        self.skip_before(mark)
        token = self.take(mark)
        return token.start + len(token.text)

    def body(self) -> Iterator[tuple[Statement, int]]:
        """Yield the statements in braces, each with its position in the text."""
        self.take("{")
        while not self.at("}"):
            start = self.peek().start
            results, is_list = self._results()
            self.take("=")
            value = self.expression()
            end = self.take(";").start
            yield Statement(results, is_list, value, " ".join(self._text[start:end].split())), start
        self.take("}")

    def _results(self) -> tuple[tuple[str, ...], bool]:
        if self.at("[", "("):
            closing = {"[": "]", "(": ")"}[self.take("[", "(").text]
            return tuple(self._list(closing, self.name)), closing == "]"
        names = [self.name()]
        while self.at(","):
            self.take(",")
            names.append(self.name())
        return tuple(names), False

    def _list(self, closing: str, item: Callable[[], Any]) -> list[Any]:
        items = []
        while not self.at(closing):
            items.append(item())
            if not self.at(closing):
                self.take(",")
        self.take(closing)
        return items

    def expression(self) -> Node:
        """Read an expression."""
        chosen = self._binary(0)
        if not self.at("if"):
            return chosen
        self.take("if")
        condition = self.expression()
        self.take("else")
        return Conditional(condition, chosen, self.expression())

    def _binary(self, least: int) -> Node:
        """Read operands with operators between them that bind at least as tightly as `least`."""
        left = self._unary()
        while True:
            token = self.tokens[self._at]
            level = _BINDING.get(token.text, -1)
            if level < least or token.kind not in ("mark", "name"):
                return left
            self._at += 1
            left = Operator(token.text, (left, self._binary(level + 1)))

    def _unary(self) -> Node:
        if self.at("-", "+", "!"):
            mark, operand = self.take("-", "+", "!").text, self._unary()
            if mark == "-" and isinstance(operand, Literal) and type(operand.value) in (int, float):
                return Literal(-operand.value)
            return operand if mark == "+" else Operator(mark, (operand,))
        node = self._atom()
        while self.at("["):
            node = self._subscript(node)
        return node

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
        kind, text, _ = token = self.peek()
        if kind == "end" or (kind == "mark" and text not in "[("):
            raise self.wrong("a value is expected")
        self._at += 1
        if kind == "number":
            return Literal(self._number(token))
        if kind == "string":
            return Literal(unquote(text))
        if kind == "name":
            if text in _LITERALS:
                return Literal(_LITERALS[text])
            return self._call(text) if self.at("(") or self._is_generic() else Name(text)
        if text == "[":
            return self._comprehension() if self.at("for") else Items(tuple(self._list("]", self.expression)), True)
        items = self._list(")", self.expression)
        if len(items) != 1:
            return Items(tuple(items), False)
        return replace(items[0], in_parentheses=True) if isinstance(items[0], Operator) else items[0]

    def _number(self, token: Token) -> int | float:
        if len(token.text) > _MOST_DIGITS:
            raise self.error_at(token.start, f"a number of {len(token.text)} digits is not supported")
        return float(token.text) if set(token.text) & set(".eE") else int(token.text)

    def _is_generic(self) -> bool:
        """Return whether a data type in angle brackets and the arguments of a call come next."""
        if not self.at("<"):
            return False
        following = self.tokens[self._at + 1 : self._at + 4]
        return [token.text for token in following[1:]] == [">", "("] and following[0].kind == "name"

    def _call(self, operator: str) -> Node:
        dtype = ""
        if self.at("<"):
            self.take("<")
            dtype = self.name()
            self.take(">")
        self.take("(")
        return Call(operator, dtype, tuple(self._list(")", self._argument)))

    def _argument(self) -> tuple[str, Node]:
        name = ""
        if self.peek().kind == "name" and self.tokens[self._at + 1].text == "=":
            name = self.name()
            self.take("=")
        return name, self.expression()

    def _comprehension(self) -> Node:
        self.take("for")
        loops: list[tuple[str, Node]] = []
        while not loops or self.at(","):
            if loops:
                self.take(",")
            name = self.name()
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
