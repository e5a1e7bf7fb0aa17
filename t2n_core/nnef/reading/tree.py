"""The tree of NNEF's expressions, as the grammar reads them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias


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
    in_parentheses: bool = False
    """True where the text has parentheses around it, which are kept when a size is written again."""


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


def parts_of(node: Node) -> tuple[Node, ...]:
    """Return the nodes directly below a node, in the order of the text."""
    match node:
        case Items():
            return node.items
        case Call():
            return tuple(value for _, value in node.arguments)
        case Operator():
            return node.operands
        case Conditional():
            return (node.chosen, node.condition, node.other)
        case Subscript():
            return (node.items, *(bound for bound in (node.first, node.last) if bound is not None))
        case Comprehension():
            condition = () if node.condition is None else (node.condition,)
            return (*(values for _, values in node.loops), *condition, node.item)
    return ()


def nodes_in(node: Node) -> Iterator[Node]:
    """Yield a node and all nodes below it, in the order of the text."""
    yield node
    for part in parts_of(node):
        yield from nodes_in(part)


def names_in(node: Node) -> set[str]:
    """Return all names in a tree."""
    return {part.name for part in nodes_in(node) if isinstance(part, Name)}
