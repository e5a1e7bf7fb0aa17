"""The number of elements of `torch.arange`, as a quotient of integers.

PyTorch counts `ceil((end - start) / step)` in float64, which is exact for short fractions of a power of two, or, if the
step is itself a size, by an integer quotient.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy
import torch

from t2n_core.errors import CaptureError
from t2n_core.nnef.sizes.dims import as_dim, floor_div
from t2n_core.torch_graph.constraints.dynamic_axes import SymbolTable

ARANGES = frozenset({"aten::arange", "aten::arange.start", "aten::arange.start_step"})
_LARGEST_PART = 1 << 20
_LARGEST_DIVISOR = 64


def decide_count(table: SymbolTable, arguments: Mapping[str, Any], length: Any) -> None:
    """Fix the length of the result of one of ARANGES in the table if PyTorch's expression is not supported."""
    start, end, step = (_value(arguments.get(name, default)) for name, default in _DEFAULTS.items())
    kind = type(length.node.expr).__name__ if isinstance(length, torch.SymInt) else ""
    is_integral = all(isinstance(argument, int | torch.SymInt) for argument in (start, end, step))
    # for integers PyTorch may count with truncated fractions, which is supported unless the step is a size
    if kind != "CeilToInt" and not (kind == "FloorDiv" and is_integral and isinstance(step, torch.SymInt)):
        return
    if not table.knows(length.node.expr):
        return
    first, last, by = (_exact(table, argument) for argument in (start, end, step))
    if first is None or last is None or by is None:
        return
    count = sympy.cancel((last - first) / by) if by.free_symbols else sympy.expand((last - first) / by)
    parts = count.as_coefficients_dict()
    if all(_is_integer(term) and _is_rational(number) for term, number in parts.items()):
        divisor = sympy.ilcm(1, 1, *(number.q for number in parts.values()))
        table.decide(length.node.expr, floor_div(as_dim(sympy.expand(count * divisor) + divisor - 1), int(divisor)))


_DEFAULTS: dict[str, Any] = {"start": 0, "end": None, "step": 1}


def _value(argument: Any) -> Any:
    return argument.meta.get("val") if isinstance(argument, torch.fx.Node) else argument


def _exact(table: SymbolTable, number: Any) -> Any:
    """Return a bound or a step as an expression that float64 computes without rounding; None for any other."""
    try:
        if isinstance(number, torch.SymInt | torch.SymFloat):
            exact = sympy.expand(sympy.sympify(table.expression(number.node.expr)))
        else:
            exact = sympy.Rational(number)
    except (CaptureError, TypeError, ValueError):
        return None
    parts = exact.as_coefficients_dict()
    fits = all(_is_integer(term) and _is_short(part) for term, part in parts.items())
    return exact if fits else None


def _is_rational(part: Any) -> bool:
    return bool(part.is_Rational)


def _is_short(part: Any) -> bool:
    """Return whether products of this factor with sizes up to 2^26 are exact in float64."""
    return _is_rational(part) and abs(part.p) <= _LARGEST_PART and part.q in _POWERS


_POWERS = frozenset(1 << n for n in range(_LARGEST_DIVISOR.bit_length()))


def _is_integer(term: Any) -> bool:
    """Return whether a term is a product of sizes, or 1."""
    return bool(term.is_integer)
