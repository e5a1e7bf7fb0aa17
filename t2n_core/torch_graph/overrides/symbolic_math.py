"""math.sqrt, logarithms, min and max on symbolic sizes during capture: Python's own would fix a size."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import torch

from t2n_core.torch_graph.compat.patches import Swap

_SYMBOLIC: tuple[Any, ...] = (torch.SymInt, torch.SymFloat)


def _sqrt(x: Any) -> Any:
    return torch.sym_sqrt(x)


def _log(x: Any, base: float = math.e) -> Any:
    """Return the logarithm as a tensor: an exported program may contain roots of sizes, but no logarithms."""
    full: Any = torch.full  # takes sizes, whatever its annotations say
    return full((), x, dtype=torch.get_default_dtype()).log() / _plain_log(base)


def _log2(x: Any) -> Any:
    return _log(x, 2)


def _log10(x: Any) -> Any:
    return _log(x, 10)


_plain_log = math.log
_OF_SIZES: dict[str, Callable[..., Any]] = {"sqrt": _sqrt, "log": _log, "log2": _log2, "log10": _log10}


def keep_math_symbolic(swap: Swap) -> None:
    """Keep roots and logarithms of sizes, and extremes of floats made from them, symbolic in the block of `swap`."""
    for name, symbolic in _OF_SIZES.items():
        swap(math, name, _either(getattr(math, name), symbolic))
    swap(builtins, "min", _of_two(min, torch.sym_min))
    swap(builtins, "max", _of_two(max, torch.sym_max))
    for kind in _SYMBOLIC:
        if not hasattr(kind, "sqrt"):
            swap(kind, "sqrt", _sqrt)  # numpy's function calls the method of the same name


def _either(plain: Callable[..., Any], symbolic: Callable[..., Any]) -> Callable[..., Any]:
    def function(*args: Any) -> Any:
        return (symbolic if args and isinstance(args[0], _SYMBOLIC) else plain)(*args)

    return function


def _of_two(plain: Callable[..., Any], symbolic: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of two numbers: `symbolic` for floats computed from sizes, otherwise torch.export's `plain`."""

    def extreme(*args: Any, **options: Any) -> Any:
        floats = len(args) == 2 and not options and any(isinstance(a, torch.SymFloat) for a in args)
        return symbolic(*args) if floats else plain(*args, **options)

    return extreme
