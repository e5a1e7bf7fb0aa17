"""Sizes rounded from floating point, `math.ceil(T / 2)`, `int(T * 0.1)` or `round(T / 3)`, as quotients of integers.

PyTorch keeps such a size as a tree: a float of a size, divided, multiplied and added to, below a function that rounds
it. As a fraction of an integer it is a quotient that engines compute exactly.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
import sympy

from t2n_core.nnef.sizes.dims import FloorDiv, Max, Min, at_most

_LARGEST_DENOMINATOR: Final = 1000
_COMPARED: Final = 1 << 24
"""Up to this size a quotient is compared with what floating point gives."""
_CHUNK: Final = 1 << 20
_ROUNDINGS: Final[dict[str, Callable[[Any], Any]]] = {
    "FloorToInt": np.floor,
    "CeilToInt": np.ceil,
    "TruncToInt": np.trunc,
    "RoundToInt": np.rint,
}
KINDS: Final = frozenset(_ROUNDINGS)
"""Names of PyTorch's functions that round a float to an integer."""


@dataclass(frozen=True, slots=True)
class _Line:
    """factor * size + offset, and the steps in floating point that compute it."""

    size: Any
    factor: Fraction
    offset: Fraction
    steps: tuple[tuple[str, float], ...]


def rounded(kind: str, e: Any, translate: Callable[[Any], Any]) -> Any:
    """Return the integer that one of KINDS gives for `e` as an expression of sizes; None where no quotient equals it.

    Args:
        e: PyTorch's expression of the float.
        translate: Turns PyTorch's expression of an integer into one of ours.
    """
    if type(e).__name__ == "IntTrueDiv" and not e.args[1].is_Integer:
        over, under = (translate(part) for part in e.args)
        if kind == "RoundToInt" or not (at_most(0, over) and at_most(1, under)):
            return None
        return -FloorDiv(-over, under) if kind == "CeilToInt" else FloorDiv(over, under)
    line = _line(e)
    if line is None or line.factor <= 0:
        return None
    under = line.factor.denominator * line.offset.denominator
    times, plus = int(line.factor * under), int(line.offset * under)
    size = translate(line.size)
    signed = not at_most(0, times * size + plus)
    if not _is_exact(line) and (signed or not _agrees(kind, line.steps, times, plus, under)):
        return None
    return _quotient(kind, sympy.expand(times * size + plus), under, signed)


def _quotient(kind: str, over: Any, under: int, signed: bool) -> Any:
    """Return `over / under`, rounded; `signed` says that it may be negative."""
    down, up = FloorDiv(over, under), FloorDiv(over + under - 1, under)
    if kind == "FloorToInt" or (kind == "TruncToInt" and not signed):
        return down
    if kind == "CeilToInt":
        return up
    if kind == "TruncToInt":
        return Max(down, 0) + Min(up, 0)
    if under % 2:
        return FloorDiv(2 * over + under, 2 * under)
    # Half to even: the result grows at every second half, and just after each of the others.
    half = under // 2
    return FloorDiv(over + half, 2 * under) + FloorDiv(over + 2 * under - half - 1, 2 * under)


def _line(e: Any) -> _Line | None:
    kind = type(e).__name__
    if kind == "ToFloat":
        return _Line(e.args[0], Fraction(1), Fraction(0), ())
    if kind == "IntTrueDiv":
        size, number = e.args
        return _with(_Line(size, Fraction(1), Fraction(0), ()), "/", number)
    if kind == "FloatTrueDiv":
        return _with(_line(e.args[0]), "/", e.args[1])
    if kind in ("Mul", "Add") and len(e.args) == 2 and e.args[0].is_Number:
        return _with(_line(e.args[1]), "*" if kind == "Mul" else "+", e.args[0])
    return None


def _with(line: _Line | None, step: str, number: Any) -> _Line | None:
    """Return the line after one more step with a number."""
    exact = _fraction(number)
    if line is None or exact is None or (step == "/" and exact == 0):
        return None
    steps = (*line.steps, (step, float(number)))
    if step == "+":
        return _Line(line.size, line.factor, line.offset + exact, steps)
    by = exact if step == "*" else 1 / exact
    return _Line(line.size, line.factor * by, line.offset * by, steps)


def _fraction(number: Any) -> Fraction | None:
    """Return the fraction of small numbers that a float stands for, such as 1/10; None where there is none."""
    if not number.is_Number or not number.is_finite:
        return None
    found = Fraction(float(number)).limit_denominator(_LARGEST_DENOMINATOR)
    return found if float(found) == float(number) else None


def _is_exact(line: _Line) -> bool:
    """Return whether floating point rounds to what the fraction does, for all sizes far beyond those of tensors.

    One division of integers cannot reach an integer that the fraction does not, and a power of two loses no digit.
    """
    if len(line.steps) <= 1 and all(step == "/" and number.is_integer() for step, number in line.steps):
        return True
    return all(_is_power_of_two(number) if step != "+" else _is_dyadic(number) for step, number in line.steps)


def _is_power_of_two(number: float) -> bool:
    return abs(math.frexp(number)[0]) == 0.5


def _is_dyadic(number: float) -> bool:
    return (number * 1024).is_integer()


@functools.lru_cache(256)
def _agrees(kind: str, steps: tuple[tuple[str, float], ...], times: int, plus: int, under: int) -> bool:
    """Return whether a quotient is what floating point gives, for all sizes up to _COMPARED."""
    for first in range(0, _COMPARED, _CHUNK):
        sizes = np.arange(first, first + _CHUNK, dtype=np.int64)
        if first == 0:
            sizes = sizes[(times * sizes + plus) >= 0]
        value = sizes.astype(np.float64)
        for step, number in steps:
            value = value / number if step == "/" else value * number if step == "*" else value + number
        if not np.array_equal(_ROUNDINGS[kind](value).astype(np.int64), _integers(kind, times * sizes + plus, under)):
            return False
    return True


def _integers(kind: str, over: Any, under: int) -> Any:
    """Return the quotients that `_quotient` writes, for arrays of numerators that are not negative."""
    if kind in ("FloorToInt", "TruncToInt"):
        return over // under
    if kind == "CeilToInt":
        return (over + under - 1) // under
    if under % 2:
        return (2 * over + under) // (2 * under)
    half = under // 2
    return (over + half) // (2 * under) + (over + 2 * under - half - 1) // (2 * under)


__all__ = ["KINDS", "rounded"]
