"""Arguments of operations: the symbolic sizes and the axes among them, and a key that finds equal ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import sympy

from t2n_core.errors import LowerError
from t2n_core.nnef.graph import Value, values_in

_OF_RESULT = frozenset({"unsqueeze", "stack", "tract_core_one_hot"})
"""Operators whose axes are axes of their result, which has one more for each of them."""
_OTHER = frozenset({"tract_core_matmul", "tract_core_qmatmul"})
"""Operators whose `axes` are letters of an equation, for all operands in a row."""


def key_of(argument: Any) -> Any:
    """Return a key that is equal for arguments that have the same text and the same values."""
    if isinstance(argument, Value):
        return id(argument)
    if isinstance(argument, dict):
        return tuple((name, key_of(a)) for name, a in argument.items())
    if isinstance(argument, list | tuple):
        return tuple(map(key_of, argument))
    return argument if isinstance(argument, sympy.Expr) else (type(argument), repr(argument))  # 0.0 is not -0.0


def symbols_in(arguments: Iterable[Any]) -> set[str]:
    """Return the names of the symbols in sizes among arguments, also in nested lists."""
    names: set[str] = set()
    for argument in arguments:
        if isinstance(argument, sympy.Expr):
            names.update(symbol.name for symbol in argument.free_symbols)
        elif isinstance(argument, list | tuple):
            names |= symbols_in(argument)
    return names


def replace_values(argument: Any, swap: Callable[[Value], Value]) -> Any:
    """Return `argument` with every value in it, also in lists, passed through `swap`."""
    if isinstance(argument, list | tuple):
        return type(argument)(replace_values(item, swap) for item in argument)
    return swap(argument) if isinstance(argument, Value) else argument


def count_axes(operator: str, arguments: Mapping[str, Any], operands: Iterable[Any] = ()) -> dict[str, Any]:
    """Return the arguments of an operator with its `axis` or `axes` counted from 0.

    Negative ones count from the end, as in PyTorch and ONNX. `operands` are arguments without names. Raises LowerError
    for an axis that the first tensor among all arguments does not have, or that is named twice.
    """
    counted = dict(arguments)
    name = next((name for name in ("axis", "axes") if name in counted), None)
    if name is None or operator in _OTHER:
        return counted
    operand = next((v for argument in (*operands, *counted.values()) for v in values_in(argument)), None)
    if operand is None:
        return counted
    axis_argument = counted[name]
    axes = [axis_argument] if name == "axis" else list(axis_argument)
    if not all(type(axis) is int for axis in axes):
        return counted
    rank = operand.rank + (len(axes) if operator in _OF_RESULT else 0)
    wrong = next((axis for axis in axes if not -rank <= axis < rank), None)
    if wrong is not None:
        raise LowerError(f"`{operator}` has no axis {wrong}: its tensor has the rank {rank}")
    axes = [axis % rank for axis in axes]
    if len(set(axes)) < len(axes):
        raise LowerError(f"`{operator}` names an axis twice: {name} = {axis_argument} of a tensor of rank {rank}")
    counted[name] = axes[0] if name == "axis" else axes
    return counted
