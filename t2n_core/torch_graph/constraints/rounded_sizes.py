"""Sizes rounded from floating point, `math.ceil(T / 2)`, `int(T * 0.1)` or `round(T / 3)`, as quotients of integers.

PyTorch represents such a size as a tree: a size converted to float, divided, multiplied and added to, below a rounding
function. With the factor as a fraction, it is a quotient of integers that engines compute exactly.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
import sympy

from t2n_core.errors import CaptureError
from t2n_core.nnef.sizes.dims import FloorDiv, Max, Min, at_most

_LARGEST_DENOMINATOR: Final = 1000
_COMPARED: Final = 1 << 24
"""Up to this size a quotient is compared with the floating-point result."""
_CHUNK: Final = 1 << 20
_ROUNDINGS: Final[dict[str, Callable[[Any], Any]]] = {
    "FloorToInt": np.floor,
    "CeilToInt": np.ceil,
    "TruncToInt": np.trunc,
    "RoundToInt": np.rint,
}
KINDS: Final = frozenset(_ROUNDINGS)
"""Names of PyTorch's functions that round a float to an integer."""


Steps = tuple[tuple[str, float], ...]
"""Steps in floating point, each an operator and a number: ("*", 1.7), ("/", 3.0), ("+", 0.5)."""


@dataclass(frozen=True, slots=True)
class _Line:
    """factor * size + offset, and the steps in floating point that compute it."""

    size: Any
    factor: Fraction
    offset: Fraction
    steps: Steps


def exact_quotient(kind: str, e: Any, translate: Callable[[Any], Any]) -> Any:
    """Return the result of one of KINDS for `e` as an integer expression of sizes.

    Args:
        e: PyTorch's expression of the float.
        translate: Turns PyTorch's expression of an integer into one of ours.

    Raises CaptureError if no quotient equals it at all sizes.
    """
    if type(e).__name__ == "IntTrueDiv" and not e.args[1].is_Integer:
        over, under = (translate(part) for part in e.args)
        if kind == "RoundToInt" or not (at_most(0, over) and at_most(1, under)):
            raise _refusal(str(e))
        return -FloorDiv(-over, under) if kind == "CeilToInt" else FloorDiv(over, under)
    line = _line(e)
    if line is None or line.factor <= 0:
        raise _refusal(str(e))
    under = line.factor.denominator * line.offset.denominator
    times, plus = int(line.factor * under), int(line.offset * under)
    over = sympy.expand(times * translate(line.size) + plus)
    signed = not at_most(0, over)
    if not _is_exact(line):
        other = None if signed else first_difference(kind, line.steps, times, plus, under)
        if signed or other is not None:
            raise _refusal(str(e) if other is None else _difference(kind, line, other))
    if signed and kind == "TruncToInt":
        return Max(FloorDiv(over, under), 0) + Min(_quotient("CeilToInt", over, under, FloorDiv), 0)
    return _quotient(kind, over, under, FloorDiv)


def _refusal(reason: str) -> CaptureError:
    return CaptureError(
        f"a size of this model is computed in floating point: {reason}",
        hint="use integers, such as x.shape[1] * 7 // 5, or one factor such as 0.5 or 1.5, for what becomes a size",
    )


def _difference(kind: str, line: _Line, size: int) -> str:
    """Return the reason of an error for a size at which floating point and the fraction yield different integers."""
    inexact = int(_in_floats(kind, line.steps, np.array([size]))[0])
    exact = line.factor * size + line.offset
    quotient = _quotient(kind, exact.numerator, exact.denominator, operator.floordiv)
    if [step for step, _ in line.steps] == ["*"]:
        factor = line.steps[0][1]
        return (
            f"float64 rounds the factor {factor}: of {size} elements PyTorch makes {inexact}, where {line.factor} of "
            f"them are {quotient}"
        )
    return f"it is {inexact} of {size} elements, and {quotient} without rounding in float64"


def _quotient(kind: str, over: Any, under: int, divide: Callable[[Any, Any], Any]) -> Any:
    """Return `over / under` rounded by one of KINDS. `divide` rounds down; a quotient to truncate is not negative."""
    if kind in ("FloorToInt", "TruncToInt"):
        return divide(over, under)
    if kind == "CeilToInt":
        return divide(over + under - 1, under)
    if under % 2:
        return divide(2 * over + under, 2 * under)
    # ties to even: the result steps up at every second tie, and just after the ties between them
    half = under // 2
    return divide(over + half, 2 * under) + divide(over + 2 * under - half - 1, 2 * under)


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


_STEPS: Final = {"*": "factor", "/": "divisor", "+": "summand"}


def _with(line: _Line | None, step: str, number: Any) -> _Line | None:
    """Return the line after one more step with a number. Raises CaptureError if that is not a short fraction."""
    if line is None or not number.is_Number or not number.is_finite or (step == "/" and number == 0):
        return None
    exact = fraction_of(float(number))
    if exact is None:
        raise _refusal(f"the {_STEPS[step]} {float(number)} is not a short fraction")
    steps = (*line.steps, (step, float(number)))
    if step == "+":
        return _Line(line.size, line.factor, line.offset + exact, steps)
    by = exact if step == "*" else 1 / exact
    return _Line(line.size, line.factor * by, line.offset * by, steps)


def fraction_of(number: float) -> Fraction | None:
    """Return the fraction of small integers that a float represents, 17/10 for 1.7; None if there is none."""
    fraction = Fraction(number).limit_denominator(_LARGEST_DENOMINATOR)
    return fraction if float(fraction) == number else None


def _is_exact(line: _Line) -> bool:
    """Return whether floating point and the fraction round alike for all sizes, far beyond any tensor's.

    One division of integers cannot round to an integer that the fraction does not reach, and powers of two are exact.
    """
    if len(line.steps) <= 1 and all(step == "/" and number.is_integer() for step, number in line.steps):
        return True
    return all(_is_power_of_two(number) if step != "+" else _is_dyadic(number) for step, number in line.steps)


def _is_power_of_two(number: float) -> bool:
    return abs(math.frexp(number)[0]) == 0.5


def _is_dyadic(number: float) -> bool:
    return (number * 1024).is_integer()


@functools.lru_cache(256)
def first_difference(kind: str, steps: Steps, times: int, plus: int, under: int) -> int | None:
    """Return the first size at which floating point rounds to another integer than (times * size + plus) / under does.

    None if there is no such size up to 2^24. Sizes at which the fraction is negative do not count.
    """
    for first in range(0, _COMPARED, _CHUNK):
        sizes = np.arange(first, first + _CHUNK, dtype=np.int64)
        over = times * sizes + plus
        expected = _quotient(kind, over, under, operator.floordiv)
        different = np.flatnonzero((_in_floats(kind, steps, sizes) != expected) & (over >= 0))
        if different.size:
            return int(sizes[different[0]])
    return None


def _in_floats(kind: str, steps: Steps, sizes: Any) -> Any:
    """Return the integers that PyTorch computes from these sizes in float64."""
    value = sizes.astype(np.float64)
    for step, number in steps:
        value = value / number if step == "/" else value * number if step == "*" else value + number
    return _ROUNDINGS[kind](value).astype(np.int64)
