"""Statements of the grammar as flat assignments, which hold one operation each, and assignments as statements."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from t2n_core.errors import InputError
from t2n_core.nnef.reading.document import Argument, Assignment, Expression, replace_names, value_text
from t2n_core.nnef.reading.document import Name as NameText
from t2n_core.nnef.reading.grammar import GrammarReader, parse_expression
from t2n_core.nnef.reading.tree import (
    Call,
    Items,
    Literal,
    Name,
    Node,
    Operator,
    Statement,
    Subscript,
    names_in,
    nodes_in,
    parts_of,
)

_OF_SIZES: Final = frozenset({"min", "max"})
"""Functions in expressions of sizes."""
_BINARY: Final = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "^": "pow", "<": "lt", ">": "gt", "<=": "le", ">=": "ge",
    "==": "eq", "!=": "ne", "&&": "and", "||": "or",
}  # fmt: skip
_SHAPE: Final = "tract_core_shape_of"
"""The only operator whose result has elements as an expression: after any other, tract takes a result by its place."""
_UNARY: Final = {"-": "neg", "!": "not"}


def operation_of(operator: Operator) -> str:
    """Return the name of the operation that an operator stands for, such as `add` for `+`. Raises InputError."""
    name = (_UNARY if len(operator.operands) == 1 else _BINARY).get(operator.mark)
    if name is None:
        raise InputError(f"`{operator.mark}` is not supported between tensors")
    return name


def flat_assignments(reader: GrammarReader, tensors: Iterable[str]) -> Iterator[Assignment]:
    """Yield the assignments of a body in braces; a call or an operator inside another becomes one with a new name.

    `tensors` are the names that are defined before the body. Raises InputError for comprehensions, branches and ranges
    of items, which have no place in a graph.
    """
    flattener = _Flattener({token.text for token in reader.tokens if token.kind == "name"}, set(tensors))
    for statement, position in reader.body():
        try:
            yield from flattener.assignments(statement)
        except InputError as wrong:
            raise reader.error_at(position, wrong.message) from None


def with_single_names(assignments: Sequence[Assignment], inputs: Iterable[str]) -> tuple[Assignment, ...]:
    """Return assignments in which each name has one value: all but the last value of a name are renamed.

    tract writes a name again where an output has another value's name. Input names stay as they are.
    """
    input_names = set(inputs)
    last = {name: index for index, assignment in enumerate(assignments) for name in assignment.results}
    used_names, renamed = last.keys() | input_names, dict[str, str]()
    numbered: dict[str, Iterator[str]] = {}
    new_assignments = []
    for index, assignment in enumerate(assignments):
        arguments = tuple(
            Argument(a.name, replace_names(a.value, lambda name: renamed.get(name, name))) for a in assignment.arguments
        )
        for name in assignment.results:
            renamed.pop(name, None)
            if last[name] != index and name not in input_names:
                others = numbered.setdefault(name, map(f"{name}_{{}}".format, itertools.count()))
                renamed[name] = next(other for other in others if other not in used_names)
                used_names.add(renamed[name])
        results = tuple(renamed.get(name, name) for name in assignment.results)
        new_assignments.append(replace(assignment, results=results, arguments=arguments))
    return tuple(new_assignments)


class _Flattener:
    """Gives names to the values inside expressions."""

    def __init__(self, used_names: set[str], tensors: set[str]) -> None:
        self._taken = used_names
        self._tensors = tensors
        self._assignments: list[Assignment] = []

    def assignments(self, statement: Statement) -> list[Assignment]:
        """Return a statement as assignments, the operands before what uses them."""
        self._assignments = []
        results, value = statement.results, statement.value
        if isinstance(value, Items) and len(results) == len(value.items) > 1 and names_in(value).isdisjoint(results):
            pairs = list(zip(results, value.items, strict=True))
        else:
            pairs = [(results[0], value)] if len(results) == 1 and _is_there(value) else []
        if pairs:
            parts = [Assignment((name,), "", (Argument("", self._argument(part)),)) for name, part in pairs]
            self._assignments += parts
            self._tensors.update(results)
            return self._assignments
        if isinstance(value, Operator):
            operands = tuple(Argument("", self._operand(operand)) for operand in value.operands)
            self._assignments.append(Assignment(results, operation_of(value), operands))
        elif isinstance(value, Call):
            arguments = tuple(Argument(name, self._argument(argument)) for name, argument in value.arguments)
            self._assignments.append(Assignment(results, value.operator, arguments, value.dtype, statement.is_list))
        else:
            _check_support(value)
            raise InputError(f"`{results[0]}` is assigned an expression that is neither a call nor an operation")
        self._tensors.update(results)
        return self._assignments

    def _operand(self, node: Node) -> Any:
        """Return an operand of a statement: an operation on tensors gets a name."""
        if isinstance(node, Operator) and not self._tensors.isdisjoint(names_in(node)):
            return self._assign_new(operation_of(node), "", [("", self._operand(operand)) for operand in node.operands])
        return self._argument(node)

    def _argument(self, node: Node) -> Any:
        """Return an argument of a call: calls get names, and operators that may be sizes stay expressions."""
        _check_support(node)
        match node:
            case Literal():
                return node.value
            case Name():
                return NameText(node.name)
            case Items():
                items = map(self._argument, node.items)
                return list(items) if node.is_list else tuple(items)
            case Operator() if _may_be_size(node):
                return _expression(node)
            case Subscript(items=Call(operator=name)) if name != _SHAPE:
                raise InputError(f"one of the results of `{name}` is not supported as an expression: give them names")
            case Subscript():
                parts = [node_of(self._argument(part)) for part in parts_of(node)]
                return _expression(replace(node, items=parts[0], first=parts[1]))
            case Operator():
                return self._assign_new(
                    operation_of(node), "", [("", self._argument(operand)) for operand in node.operands]
                )
            case Call():
                arguments = [(name, self._argument(argument)) for name, argument in node.arguments]
                return self._assign_new(node.operator, node.dtype, arguments)

    def _assign_new(self, operator: str, dtype: str, arguments: list[tuple[str, Any]]) -> NameText:
        number = 0
        while (name := f"{operator}_{number}") in self._taken:
            number += 1
        self._taken.add(name)
        self._tensors.add(name)
        self._assignments.append(
            Assignment((name,), operator, tuple(Argument(*argument) for argument in arguments), dtype)
        )
        return NameText(name)


def _may_be_size(node: Node) -> bool:
    """Return whether an expression calls nothing but the functions of sizes."""
    return not any(isinstance(part, Call) and part.operator not in _OF_SIZES for part in nodes_in(node))


def _is_there(node: Node) -> bool:
    """Return whether a statement gives a name to a value that is there: a constant, another name, or an element."""
    return isinstance(node, Literal | Name | Subscript) or (isinstance(node, Items) and node.is_list)


def _check_support(node: Node) -> None:
    """Raise InputError for a node that only the body of a fragment holds, whose arguments decide what it is."""
    is_element = isinstance(node, Subscript) and not node.is_range
    if not is_element and not isinstance(node, Literal | Name | Items | Operator | Call):
        kind = type(node).__name__.lower()
        raise InputError(f"a {kind} is not supported outside the definition of a fragment")


def _expression(node: Node) -> Expression:
    """Return an operator or an element as an expression, which calls nothing but the functions of sizes."""
    names = dict.fromkeys(NameText(part.name) for part in nodes_in(node) if isinstance(part, Name))
    return Expression(_size_text(node), tuple(names))


def _size_text(node: Node) -> str:
    """Return an expression as text, with a space between its tokens."""
    match node:
        case Literal():
            return value_text(node.value)
        case Name():
            return node.name
        case Items():
            opening, closing = "[]" if node.is_list else "()"
            return f"{opening} {' , '.join(map(_size_text, node.items))} {closing}"
        case Call():
            return f"{node.operator} ( {' , '.join(_size_text(value) for _, value in node.arguments)} )"
        case Operator():
            text = _operator_text(node)
            return f"( {text} )" if node.in_parentheses else text
        case Subscript(first=first) if first is not None:
            return f"{_size_text(node.items)} [ {_size_text(first)} ]"
    _check_support(node)
    raise AssertionError(node)


def _operator_text(node: Operator) -> str:
    if node.mark not in _BINARY and node.mark != "!":
        raise InputError(f"`{node.mark}` is not supported in a size")
    operands = list(map(_operand_text, node.operands))
    if len(operands) == 2:
        return f" {node.mark} ".join(operands)
    return f"! {operands[0]}" if node.mark == "!" else f"0 - {operands[0]}"


def _operand_text(node: Node) -> str:
    if isinstance(node, Operator) and node.mark == "-" and len(node.operands) == 1:
        return f"( {_operator_text(node)} )"
    return _size_text(node)


def statement_of(assignment: Assignment) -> Statement:
    """Return an assignment of a graph as a statement. Raises InputError for an expression that cannot be parsed."""
    arguments = tuple((argument.name, node_of(argument.value)) for argument in assignment.arguments)
    call = Call(assignment.operator or "copy", assignment.dtype, arguments)
    return Statement(assignment.results, assignment.is_list, call, assignment.text())


def node_of(value: Any) -> Node:
    """Return an argument of an assignment as a tree."""
    if isinstance(value, NameText):
        return Name(value)
    if isinstance(value, Expression):
        return parse_expression(value.text)
    if isinstance(value, list | tuple):
        return Items(tuple(map(node_of, value)), isinstance(value, list))
    return Literal(value)
