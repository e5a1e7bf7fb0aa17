"""Arguments of operations: the symbolic sizes among them, and a key that finds equal ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import sympy

from t2n_core.nnef.graph import Value


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
    found: set[str] = set()
    for argument in arguments:
        if isinstance(argument, sympy.Expr):
            found.update(symbol.name for symbol in argument.free_symbols)
        elif isinstance(argument, list | tuple):
            found |= symbols_in(argument)
    return found


def replace_values(argument: Any, swap: Callable[[Value], Value]) -> Any:
    """Return `argument` with every value in it, also in lists, passed through `swap`."""
    if isinstance(argument, list | tuple):
        return type(argument)(replace_values(item, swap) for item in argument)
    return swap(argument) if isinstance(argument, Value) else argument
