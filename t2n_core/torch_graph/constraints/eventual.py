"""Find the size from which a condition on one size is periodic, so that finitely many sizes determine its truth at all.

A size expression of sums, products, quotients, remainders and extremes is, from some size on, a polynomial on the sizes
of each residue class. So from the last root on, the sign of a difference of two of them depends on the class alone.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import sympy
from sympy.core.relational import Relational

from t2n_core.nnef.sizes.dims import FloorDiv, Max, Min, Modulo

Polynomial: TypeAlias = tuple[Fraction, ...]
"""Coefficients, the constant first, without trailing zeros."""
_LONGEST_PERIOD = 1 << 12
_HIGHEST_DEGREE = 6


class UnsolvedError(ValueError):
    """A condition cannot be solved, or its period is too long."""


class _PeriodError(Exception):
    """The expression is a polynomial with integer values only if the period is multiplied by a divisor."""

    def __init__(self, divisor: int) -> None:
        super().__init__(divisor)
        self.divisor = divisor


@dataclass(frozen=True, slots=True)
class Course:
    """How the truth of a condition depends on the size of one symbol."""

    period: int
    start: int
    """The size from which the truth value has that period."""
    turns: tuple[int, ...]
    """Sizes around the roots of the differences in the condition, where its truth may change before the start."""
    has_all_turns: bool
    """True if the truth changes nowhere else, apart from the period."""


def course(condition: Any, name: str, others: Mapping[str, int]) -> Course:
    """Return how the truth of a condition depends on the size of a symbol, at these sizes of all others.

    Raises UnsolvedError.
    """
    period = 1
    while True:
        try:
            residues = [_Residue(name, others, period, rest) for rest in range(period)]
            start = max(residue.start(condition) for residue in residues)
            turns = sorted({size for residue in residues for size in residue.turns()})
            return Course(period, start, tuple(turns), all(residue.is_whole for residue in residues))
        except _PeriodError as error:
            period *= error.divisor
        if period > _LONGEST_PERIOD:
            raise UnsolvedError(f"{condition} has a period of more than {_LONGEST_PERIOD}")


class _Residue:
    """The polynomials in n for the sizes `period * n + rest`, and the least n from which they are right."""

    def __init__(self, name: str, others: Mapping[str, int], period: int, rest: int) -> None:
        self._name = name
        self._others = others
        self._size: Polynomial = (Fraction(rest), Fraction(period))
        self._period = period
        self._rest = rest
        self._from = 0
        self._roots: set[int] = set()
        self.is_whole = True
        """True if the polynomials are right from 0 on, and their roots are exact."""

    def start(self, condition: Any) -> int:
        """Return the size of this class from which the condition is always true or always false."""
        self._settle(condition)
        return self._period * (self._from + 1)

    def turns(self) -> Iterator[int]:
        """Yield the sizes of this class on both sides of each root."""
        for root in self._roots:
            yield from (self._period * n + self._rest for n in range(max(root - 1, 0), root + 3))

    def _settle(self, condition: Any) -> None:
        if isinstance(condition, sympy.And | sympy.Or | sympy.Not):
            for part in condition.args:
                self._settle(part)
        elif isinstance(condition, Relational):
            left, right = map(self._polynomial, condition.args)
            self._sign(_minus(left, right))
        elif condition not in (sympy.true, sympy.false):
            raise UnsolvedError(f"{condition} is not a comparison")

    def _sign(self, p: Polynomial) -> int:
        """Return the sign of a polynomial from some n on, and record that n."""
        if not p:
            return 0
        roots = _roots(p)
        self.is_whole = self.is_whole and len(p) <= 2
        self._roots.update(map(math.floor, roots))
        self._from = max(self._from, _last_root(p))
        return 1 if p[-1] > 0 else -1

    def _polynomial(self, e: Any) -> Polynomial:
        if e.is_Symbol:
            return self._size if e.name == self._name else _constant(self._others[e.name])
        if e.is_Rational:
            return _constant(Fraction(int(e.p), int(e.q)))
        if isinstance(e, sympy.Add | sympy.Mul | FloorDiv | Modulo | Max | Min):
            parts = [self._polynomial(part) for part in e.args]
            return functools.reduce(self._operation(e), parts)
        if e.is_Pow and e.exp.is_Integer and 0 <= e.exp <= _HIGHEST_DEGREE:
            return functools.reduce(_times, [self._polynomial(e.base)] * int(e.exp), _constant(1))
        raise UnsolvedError(f"{e} is not a sum, product, quotient, remainder or extreme of integers")

    def _operation(self, e: Any) -> Callable[[Polynomial, Polynomial], Polynomial]:
        if e.is_Add:
            return _plus
        if e.is_Mul:
            return _times
        if isinstance(e, FloorDiv):
            return self._quotient
        if isinstance(e, Modulo):
            return lambda a, b: _minus(a, _times(b, self._quotient(a, b)))
        self.is_whole = False
        sign = 1 if isinstance(e, Max) else -1
        return lambda a, b: a if self._sign(_minus(a, b)) * sign >= 0 else b

    def _quotient(self, a: Polynomial, b: Polynomial) -> Polynomial:
        """Return `a // b` of two polynomials.

        It is the quotient without the fractional part of its constant, minus 1 if that part is 0 and the remainder
        negative.
        """
        if not b:
            raise UnsolvedError("a quotient by 0")
        quotient, rest = _divide(a, b)
        self.is_whole = self.is_whole and len(b) == 1
        denominator = math.lcm(*(c.denominator for c in quotient[1:]))
        if denominator > 1:
            raise _PeriodError(denominator)
        constant = quotient[0] if quotient else Fraction(0)
        fraction = constant - math.floor(constant)
        if rest:
            # from the last root of these on, the remainder changes the quotient by less than the fractional part
            scaled = tuple(c * constant.denominator for c in rest)
            self._sign(_minus(b, scaled))
            self._sign(_plus(b, scaled))
        below = not fraction and self._sign(rest) * self._sign(b) < 0
        return _minus(quotient, _constant(fraction + below))


def _constant(number: int | Fraction) -> Polynomial:
    return (Fraction(number),) if number else ()


def _trim(coefficients: list[Fraction]) -> Polynomial:
    while coefficients and not coefficients[-1]:
        coefficients.pop()
    return tuple(coefficients)


def _plus(a: Polynomial, b: Polynomial) -> Polynomial:
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    return _trim([c + (shorter[i] if i < len(shorter) else 0) for i, c in enumerate(longer)])


def _minus(a: Polynomial, b: Polynomial) -> Polynomial:
    return _plus(a, tuple(-c for c in b))


def _times(a: Polynomial, b: Polynomial) -> Polynomial:
    if not a or not b:
        return ()
    if len(a) + len(b) - 2 > _HIGHEST_DEGREE:
        raise UnsolvedError(f"a product of a degree above {_HIGHEST_DEGREE}")
    product = [Fraction(0)] * (len(a) + len(b) - 1)
    for i, coefficient in enumerate(a):
        for j, other in enumerate(b):
            product[i + j] += coefficient * other
    return _trim(product)


def _divide(a: Polynomial, b: Polynomial) -> tuple[Polynomial, Polynomial]:
    """Return quotient and remainder of polynomials."""
    quotient = [Fraction(0)] * max(len(a) - len(b) + 1, 0)
    rest = list(a)
    for exponent in reversed(range(len(quotient))):
        factor = rest[exponent + len(b) - 1] / b[-1]
        quotient[exponent] = factor
        for i, c in enumerate(b):
            rest[exponent + i] -= factor * c
    return _trim(quotient), _trim(rest)


def _roots(p: Polynomial) -> list[float | Fraction]:
    """Return the real roots that are not negative, as far as rounding allows."""
    if len(p) == 2:
        root = -p[0] / p[1]
        return [root] if root >= 0 else []
    if len(p) < 2:
        return []
    roots = np.roots([float(c) for c in reversed(p)])
    return sorted(float(root.real) for root in roots if root.real >= 0 and abs(root.imag) < 1e-3 * (1 + abs(root)))


def _last_root(p: Polynomial) -> int:
    """Return an n that no real root exceeds: exactly for a line, otherwise by Fujiwara's bound."""
    degree = len(p) - 1
    if degree < 2:
        return 0 if degree < 1 else max(0, math.ceil(-p[0] / p[1]))
    sizes = (float(abs(c / p[-1])) ** (1 / (degree - exponent)) for exponent, c in enumerate(p[:-1]))
    return int(np.ceil(2 * max(sizes) * (1 + 1e-9)))
