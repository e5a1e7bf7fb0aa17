"""Values of expressions: Python values where sizes, texts and lists are computed, tensors elsewhere."""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np

from t2n_core.dialect.sizes import Size
from t2n_core.dialect.tensors import Tensor
from t2n_core.errors import InputError, MalformedArchiveError
from t2n_core.nnef.reading.flat import operation_of
from t2n_core.nnef.reading.tree import Call, Comprehension, Conditional, Items, Literal, Name, Node, Operator, Subscript

CallOperator: TypeAlias = Callable[[Call, Sequence[tuple[str, Any]]], Any]

_OF_NUMBERS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "^": operator.pow, "<": operator.lt, ">": operator.gt,
    "<=": operator.le, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
    "&&": lambda a, b: a and b, "||": lambda a, b: a or b, "in": lambda a, b: a in b,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scope:
    """The values of the names in an expression, and the function that computes its calls."""

    values: Mapping[str, Any]
    symbols: Mapping[str, int]
    call: CallOperator
    unsolved: Container[str] = ()
    """Symbols that the archive declares, and whose size no input determines."""

    def get(self, name: str) -> Any:
        if name in self.values:
            return self.values[name]
        if name in self.symbols:
            return Size(self.symbols[name])
        if name in self.unsolved:
            raise InputError(f"no input determines the size `{name}`")
        raise MalformedArchiveError(f"no statement defines `{name}`")


def evaluate_expression(node: Node, scope: Scope) -> Any:
    """Return the value of an expression. Raises InputError if it has no value."""
    match node:
        case Literal():
            return float(np.float32(node.value)) if isinstance(node.value, float) else node.value
        case Name():
            return scope.get(node.name)
        case Items():
            items = [evaluate_expression(item, scope) for item in node.items]
            return items if node.is_list else tuple(items)
        case Call():
            return _call(node, scope)
        case Operator():
            return _operator(node, scope)
        case Conditional():
            chosen = _truth(evaluate_expression(node.condition, scope))
            return evaluate_expression(node.chosen if chosen else node.other, scope)
        case Subscript():
            return _subscript(node, scope)
        case Comprehension():
            return list(_comprehension(node, scope))


def _call(node: Call, scope: Scope) -> Any:
    arguments = [(name, evaluate_expression(value, scope)) for name, value in node.arguments]
    if node.operator in _BUILT_IN:
        return _BUILT_IN[node.operator](*(value for _, value in arguments))
    sizes = [value for _, value in arguments]
    if node.operator in ("min", "max") and all(isinstance(value, int) for value in sizes):
        return Size(min(sizes) if node.operator == "min" else max(sizes))
    return scope.call(node, arguments)


_BUILT_IN: Final[dict[str, Callable[..., Any]]] = {
    "length_of": len,
    "range_of": lambda items: list(range(len(items))),
    "shape_of": lambda tensor: [Size(extent) for extent in tensor.shape],
    "scalar": float,
    "integer": int,
    "logical": bool,
    "string": str,
}
"""Functions of the standard's text that are no operators (NNEF 1.0.5, Built-in Functions)."""


def _operator(node: Operator, scope: Scope) -> Any:
    operands = [evaluate_expression(operand, scope) for operand in node.operands]
    if any(isinstance(operand, Tensor) for operand in operands):
        return scope.call(Call(operation_of(node), "", ()), [("", operand) for operand in operands])
    if len(operands) == 1:
        return not operands[0] if node.mark == "!" else -operands[0]
    left, right = operands
    result = _quotient(left, right) if node.mark == "/" else _OF_NUMBERS[node.mark](left, right)
    is_size = any(isinstance(operand, Size) for operand in operands)
    return Size(result) if is_size and type(result) is int else result


def _quotient(left: Any, right: Any) -> Any:
    if isinstance(left, float) or isinstance(right, float):
        return float(np.divide(left, right))
    return int(left) // int(right)


def _truth(value: Any) -> bool:
    return bool(value.array.all()) if isinstance(value, Tensor) else bool(value)


def _subscript(node: Subscript, scope: Scope) -> Any:
    items = evaluate_expression(node.items, scope)
    first, last = (
        None if bound is None else _index(evaluate_expression(bound, scope)) for bound in (node.first, node.last)
    )
    if node.is_range:
        return items[first:last]
    if isinstance(items, Tensor):
        return Tensor(items.array[first], items.dtype, items.is_constant)
    return items[first]


def _index(value: Any) -> int:
    return int(value.array) if isinstance(value, Tensor) else int(value)


def _comprehension(node: Comprehension, scope: Scope) -> Any:
    lists = [evaluate_expression(items, scope) for _, items in node.loops]
    for row in zip(*lists, strict=True):
        names = dict(zip((name for name, _ in node.loops), row, strict=True))
        inner = replace(scope, values={**scope.values, **names})
        if node.condition is None or _truth(evaluate_expression(node.condition, inner)):
            yield evaluate_expression(node.item, inner)
