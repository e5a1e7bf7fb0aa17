"""What tract's arithmetic of sizes knows, and where it errs."""

from __future__ import annotations

from typing import Any

import sympy
from packaging.version import Version

from t2n_core.nnef.dims import Dim, FloorDiv, Max, Min, Modulo, as_dim, has_extremes
from t2n_core.nnef.tract_versions import EXTREMES, SUBTRACTED_QUOTIENTS

_WIDE = 1 << 20
"""More than any difference of sizes that is compared; from 2^31 on, loading hangs before 0.21.6."""


def is_quotient(bound: Dim) -> bool:
    """A bound with a division in it, of which the engine cannot tell that it is within the axis."""
    return not isinstance(bound, int) and bound.has(FloorDiv, Modulo)


def is_seen_within(bound: Dim, size: Dim) -> bool:
    """True if the engine, which knows of all sizes that they are at least 1, sees that `bound` is at most `size`."""
    rest = sympy.expand(size - bound)
    least = 0
    for term, number in rest.as_coefficients_dict().items():
        at_least = _least(term)
        if at_least is None or (number < 0 and not term.is_number):
            return False
        least += at_least * number
    return bool(least >= 0)


def _least(term: sympy.Expr) -> int | None:
    """The least value of a size, as far as the engine knows it."""
    if term.is_number or term.is_Symbol:
        return 1
    if isinstance(term, FloorDiv) and term.args[0].is_Symbol and term.args[1].is_Integer:
        return int(1 // term.args[1])
    return None


def without_differences(size: Dim) -> Dim:
    """The same size where a quotient is subtracted: `T - T // 2` as `(T + 1) // 2`."""
    if isinstance(size, int) or not size.has(FloorDiv):
        return size
    return as_dim(sympy.gcd_terms(size).replace(lambda e: e.is_Add, lambda e: _turned(e, -1)))


def negated(size: sympy.Expr) -> Dim:
    """The same number where a quotient is added to what outweighs it: `T // 2 - T` as `0 - (T + 1) // 2`.

    The engine makes one quotient of it, and then divides a negative number towards zero.
    """
    return as_dim(sympy.expand(size).replace(lambda e: e.is_Add, lambda e: _turned(e, 1)))


def argument_for(version: Version, argument: Any) -> Any:
    """Return an argument of a statement with all sizes in it, also in lists, in the form that this release works out
    right."""
    if isinstance(argument, list | tuple):
        return type(argument)(argument_for(version, one) for one in argument)
    if not isinstance(argument, sympy.Expr):
        return argument
    size: Dim = argument
    if version < EXTREMES:
        size = without_extremes(size)
    return without_differences(size) if version >= SUBTRACTED_QUOTIENTS else size


def without_extremes(size: Dim) -> Dim:
    """Return the same size with quotients in place of maxima and minima: `Min(T, c)` as `T - (T - c) * [T > c]`.

    `[a >= b]` is `(a - b + M) // M`, which is right as long as both differ by less than M. The dividend must not fall
    with a size, which all releases simplify wrongly: `[a >= b]` is `1 - [b >= a + 1]`.
    """
    if not has_extremes(size):
        return size
    return as_dim(sympy.sympify(size).replace(lambda e: isinstance(e, Max | Min), _of_quotients))


def _of_quotients(extreme: sympy.Expr) -> sympy.Expr:
    is_max = isinstance(extreme, Max)
    found, *rest = extreme.args
    for other in rest:
        more = sympy.expand(other - found)
        larger = _reaches(more)  # whether the other is the greater one
        found = found + more * larger if is_max else other - more * larger
    return found


def _reaches(difference: sympy.Expr) -> sympy.Expr:
    """Return 1 where a difference is at least 0, else 0."""
    terms = difference.as_coefficients_dict()
    falls = sum(bool(number < 0) for term, number in terms.items() if not term.is_number)
    grows = sum(bool(number > 0) for term, number in terms.items() if not term.is_number)
    if falls > grows:
        return 1 - _quotient(sympy.expand(_WIDE - 1 - difference))
    return _quotient(difference + _WIDE)


def _quotient(dividend: sympy.Expr) -> sympy.Expr:
    return sympy.Function.__new__(FloorDiv, dividend, sympy.Integer(_WIDE), evaluate=False)


def _turned(total: sympy.Expr, sign: int) -> sympy.Expr:
    """A sum with a quotient that is added (1) or subtracted (-1) as minus the quotient of what is left, rounded up.

    n * (inner // d + rest) is -n * ((d - 1 - inner - d * rest) // d) for a whole `rest`. As it was where that would be
    of a number that falls with a size.
    """
    terms = sympy.expand(total).as_coefficients_dict()
    for term, number in terms.items():
        if number * sign > 0 and isinstance(term, FloorDiv) and term.args[1].is_Integer and term.args[1] > 0:
            others = {other: n / number for other, n in terms.items() if other != term}
            inner, divisor = term.args
            over = sympy.expand(divisor - 1 - inner - divisor * sympy.Add(*(n * other for other, n in others.items())))
            grows = all(n > 0 or part.is_number for part, n in over.as_coefficients_dict().items())
            if grows and all(n.is_Integer for n in others.values()):
                return -number * FloorDiv(over, divisor)
    return total
