"""Dimensions of ONNX files that are computed from others, as torch.onnx writes them: `4*H`, `T//2 + 1`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Final

_OPERATORS: Final[Mapping[type[ast.operator], Callable[[int, int], int]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def names_in(dimension: str) -> list[str]:
    """Return the names that a dimension is computed from; the dimension itself if it is no arithmetic of names."""
    node = _parsed(dimension)
    if node is None:
        return [dimension]
    return sorted({part.id for part in ast.walk(node) if isinstance(part, ast.Name)}) or [dimension]


def size_of(dimension: str, sizes: Mapping[str, int]) -> int:
    """Return the size of a dimension from its names' sizes, or its own; 0 or less if these sizes do not fit."""
    node = None if dimension in sizes else _parsed(dimension)
    try:
        return sizes[dimension] if node is None else _value(node, sizes)
    except ZeroDivisionError:
        return 0


def _parsed(dimension: str) -> ast.expr | None:
    """Return a dimension as an expression; None if it is another text."""
    try:
        node = ast.parse(dimension, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):  # names in files of others are any text
        return None
    return node if _is_arithmetic(node) else None


def _is_arithmetic(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return type(node.op) in _OPERATORS and _is_arithmetic(node.left) and _is_arithmetic(node.right)
    return isinstance(node, ast.Name) or (isinstance(node, ast.Constant) and type(node.value) is int)


def _value(node: ast.expr, sizes: Mapping[str, int]) -> int:
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_value(node.left, sizes), _value(node.right, sizes))
    return sizes[node.id] if isinstance(node, ast.Name) else int(ast.literal_eval(node))
