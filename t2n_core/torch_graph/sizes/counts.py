"""Sizes of results that PyTorch counts in floating point, as quotients of whole numbers.

`torch.arange` gives `ceil((end - start) / step)` numbers: in float64, which is exact for short fractions of a power of
two, or by a quotient by the step, which is a size itself then. Resizing by a factor gives `floor(size * factor)`
elements: with a factor such as 1.7 that is `size * 17 // 10` if float64 rounds no product to the other side.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import sympy
import torch

from t2n_core.errors import CaptureError
from t2n_core.nnef.sizes.dims import as_dim, floor_div
from t2n_core.torch_graph.sizes.dynamic_axes import SymbolTable

ARANGES = frozenset({"aten::arange", "aten::arange.start", "aten::arange.start_step"})
RESIZES = ("aten::upsample_", "aten::_upsample_", "aten::adaptive_avg_pool", "aten::_adaptive_avg_pool")
_LARGEST_PART = 1 << 20
_LARGEST_DIVISOR = 64
_LARGEST_DENOMINATOR = 1000
_LARGEST_SIZE = 1 << 24
"""The size up to which a factor is tried."""
_LARGEST_CHUNK = 1 << 20


def counts_in_floats(kind: str) -> bool:
    """Return whether sizes of the result of an operator may be numbers that PyTorch counts in floating point."""
    return kind in ARANGES or kind.startswith(RESIZES)


def decide_counts(table: SymbolTable, kind: str, arguments: Mapping[str, Any], result: Any) -> None:
    """Tell the table the sizes of an operator's result that have no form as PyTorch writes them.

    Raises CaptureError where a factor is rounded to either side.
    """
    if kind in ARANGES:
        _decide_arange(table, arguments, result.shape[0])
    else:
        for extent in result.shape:
            _decide_product(table, extent)


def _decide_arange(table: SymbolTable, arguments: Mapping[str, Any], length: Any) -> None:
    start, end, step = (_value(arguments.get(name, default)) for name, default in _DEFAULTS.items())
    kind = type(length.node.expr).__name__ if isinstance(length, torch.SymInt) else ""
    whole = all(isinstance(one, int | torch.SymInt) for one in (start, end, step))
    # with integers PyTorch may count in them, fractions cut off, which has a form unless the step is a size
    if kind != "CeilToInt" and not (kind == "FloorDiv" and whole and isinstance(step, torch.SymInt)):
        return
    if not table.knows(length.node.expr):
        return
    first, last, by = (_exact(table, one) for one in (start, end, step))
    if first is None or last is None or by is None:
        return
    count = sympy.cancel((last - first) / by) if by.free_symbols else sympy.expand((last - first) / by)
    parts = count.as_coefficients_dict()
    if all(_is_integer(term) and _is_rational(number) for term, number in parts.items()):
        divisor = sympy.ilcm(1, 1, *(number.q for number in parts.values()))
        table.decide(length.node.expr, floor_div(as_dim(sympy.expand(count * divisor) + divisor - 1), int(divisor)))


def _decide_product(table: SymbolTable, length: Any) -> None:
    expression: Any = length.node.expr if isinstance(length, torch.SymInt) else None
    if type(expression).__name__ not in ("TruncToInt", "FloorToInt") or not table.knows(expression):
        return
    factor, size = expression.args[0].as_coeff_Mul()
    if type(size).__name__ != "ToFloat" or not 0 < factor < _LARGEST_DIVISOR:
        return
    number = float(factor)
    fraction = fraction_of(number)
    if fraction is None:
        raise _refusal(f"the factor {number} is no short fraction")
    other = first_other(number, fraction)
    if other is not None:
        raise _refusal(
            f"float64 rounds the factor {number}: of {other} elements PyTorch makes {int(other * number)}, "
            f"where {fraction} of them are {other * fraction.numerator // fraction.denominator}"
        )
    whole = table.expression(size.args[0])
    table.decide(expression, floor_div(as_dim(sympy.sympify(whole) * fraction.numerator), fraction.denominator))


def _refusal(why: str) -> CaptureError:
    return CaptureError(
        f"a size of this model is computed in floating point: {why}",
        hint="resize to a size, such as size=x.shape[2] * 7 // 5, or take a factor such as 1.5",
    )


def fraction_of(factor: float) -> Fraction | None:
    """Return the short fraction that a factor stands for, 17/10 for 1.7; None if there is none."""
    found = Fraction(factor).limit_denominator(_LARGEST_DENOMINATOR)
    return found if float(found) == factor else None


@functools.cache
def first_other(factor: float, fraction: Fraction) -> int | None:
    """Return the first size whose product with a factor is, rounded down, another one in float64 than in fractions.

    None if there is no such size up to 2^24.
    """
    for begin in range(0, _LARGEST_SIZE + 1, _LARGEST_CHUNK):
        sizes = np.arange(begin, min(begin + _LARGEST_CHUNK, _LARGEST_SIZE + 1), dtype=np.int64)
        floors = np.floor(sizes.astype(np.float64) * factor).astype(np.int64)
        others = np.flatnonzero(floors != sizes * fraction.numerator // fraction.denominator)
        if others.size:
            return int(sizes[others[0]])
    return None


_DEFAULTS: dict[str, Any] = {"start": 0, "end": None, "step": 1}


def _value(argument: Any) -> Any:
    return argument.meta.get("val") if isinstance(argument, torch.fx.Node) else argument


def _exact(table: SymbolTable, number: Any) -> Any:
    """Return a bound or a step as an expression that float64 computes without rounding, None for any other."""
    try:
        if isinstance(number, torch.SymInt | torch.SymFloat):
            found = sympy.expand(sympy.sympify(table.expression(number.node.expr)))
        else:
            found = sympy.Rational(number)
    except (CaptureError, TypeError, ValueError):
        return None
    parts = found.as_coefficients_dict()
    fits = all(_is_integer(term) and _is_short(part) for term, part in parts.items())
    return found if fits else None


def _is_rational(part: Any) -> bool:
    return bool(part.is_Rational)


def _is_short(part: Any) -> bool:
    """Return whether products of a number with sizes up to 2^26 are exact in float64."""
    return _is_rational(part) and abs(part.p) <= _LARGEST_PART and part.q in _POWERS


_POWERS = frozenset(1 << n for n in range(_LARGEST_DIVISOR.bit_length()))


def _is_integer(term: Any) -> bool:
    """Return whether a term is a product of sizes, or 1."""
    return bool(term.is_integer)


__all__ = ["counts_in_floats", "decide_counts", "first_other", "fraction_of"]
