"""Sympy expressions of sizes: symbols with a range, integer functions, and bounds derived from the ranges."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable
from typing import Any

import sympy


class Size(sympy.Symbol):  # type: ignore[misc]
    """The size of a dynamic axis: an integer from `low` to `high`, unbounded if that is None."""

    __slots__ = ("high", "low")

    low: int
    high: int | None

    def __new__(cls, name: str, low: int = 1, high: int | None = None) -> Size:
        assumptions = {"integer": True, "positive": True} if low > 0 else {"integer": True, "nonnegative": True}
        size: Size = sympy.Symbol.__xnew__(cls, name, **assumptions)
        size.low, size.high = low, high
        return size

    def _hashable_content(self) -> tuple[Any, ...]:
        return (*super()._hashable_content(), self.low, -1 if self.high is None else self.high)

    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self.name, self.low, self.high), {}


class FloorDiv(sympy.Function):  # type: ignore[misc]
    """Return `a // b` of integers with the simplest possible dividend.

    Multiples of an integer `b` are moved out, and nested quotients are merged. So the length after many strided
    convolutions is one quotient of the length before them; tract 0.19 takes minutes for nested quotients. No size is
    subtracted in the dividend, as engines divide towards zero. A quotient that is the same at all sizes in range is
    that integer: engines do not derive it from the range, and would not see that an axis of this size is static.
    """

    nargs = (2,)
    is_integer = True

    @classmethod
    def eval(cls, a: sympy.Expr, b: sympy.Expr) -> sympy.Expr | None:
        if a.is_Integer and b.is_Integer:
            return sympy.Integer(int(a) // int(b))
        if b == 1:
            return a
        if b.is_Integer and b > 0:
            constant = _constant_quotient(a, b)
            if constant is not None:
                return constant
            rounded = _rounded_to_multiple(a)
            if rounded != a:
                return cls(rounded, b)
            simplified = _of_alternatives(a, b) or _without_multiples(a, b)
            if simplified is not None:
                return simplified
        return _exact_quotient(a, b)


def _constant_quotient(a: sympy.Expr, b: sympy.Integer) -> sympy.Integer | None:
    """Return `a // b` if it is the same at all sizes in range, else None."""
    if any(getattr(size, "high", None) is None for size in a.free_symbols):
        return None  # the bounds of an unbounded size take longer, and show the same
    low, high = least(a), greatest(a)
    is_constant = low is not None and high is not None and low // b == high // b
    return sympy.Integer(low // b) if is_constant else None


def _exact_quotient(a: sympy.Expr, b: sympy.Expr) -> sympy.Expr | None:
    """Return the polynomial `a / b` in sizes and functions of them; None if it leaves a rest or has fractions."""
    functions = {term: sympy.Dummy() for term in a.atoms(sympy.Function) | b.atoms(sympy.Function)}
    dividend, divisor = a.xreplace(functions), b.xreplace(functions)
    sizes = sorted(dividend.free_symbols | divisor.free_symbols, key=str)
    if not sizes or not dividend.is_polynomial() or not divisor.is_polynomial():
        return None
    quotient, rest = sympy.div(dividend, divisor, *sizes, domain="QQ")
    if rest == 0 and all(c.is_Integer for c in sympy.Poly(quotient, *sizes).coeffs()):
        return quotient.xreplace({dummy: term for term, dummy in functions.items()})
    return None


def _of_alternatives(a: sympy.Expr, b: sympy.Integer) -> sympy.Expr | None:
    """Return `Max(c, d) // b` as `Max(c // b, d // b)`; None if no term is an extreme."""
    terms = sympy.expand(a).as_coefficients_dict()
    for term, number in terms.items():
        if isinstance(term, _Extreme):
            rest = sympy.Add(*(n * t for t, n in terms.items() if t is not term))
            kind = Max if (number > 0) == (term.sign > 0) else Min
            return kind(*(FloorDiv(rest + number * argument, b) for argument in term.args))
    return None


def _without_multiples(a: sympy.Expr, b: sympy.Integer) -> sympy.Expr | None:
    """Return `a // b` as multiples of `b`, divided, plus the quotient of the rest; None if there is no multiple."""
    terms = sympy.expand(a).as_coefficients_dict()
    if not all(number.is_Integer and term.is_integer for term, number in terms.items()):
        return None
    constant = terms.pop(sympy.S.One, sympy.S.Zero)
    exact_part = constant // b + sympy.Add(*(number / b * term for term, number in terms.items() if number % b == 0))
    constant %= b
    left = {term: number for term, number in terms.items() if number % b != 0}
    if not left:
        return exact_part
    if all(number < 0 for number in left.values()):  # the negative of a quotient rounded up
        return exact_part - FloorDiv(b - 1 - constant - sympy.Add(*(number * term for term, number in left.items())), b)
    falling = {term for term, number in left.items() if number < 0 and not term.has(sympy.Function)}
    exact_part += sympy.Add(*(left[term] // b * term for term in falling))
    left.update({term: left[term] % b for term in falling})
    ((inner, times), *more) = left.items()
    if not more and times == 1 and isinstance(inner, FloorDiv) and inner.args[1].is_Integer and inner.args[1] > 0:
        return exact_part + FloorDiv(inner.args[0] + constant * inner.args[1], inner.args[1] * b)
    if exact_part == 0:
        return None
    return exact_part + FloorDiv(constant + sympy.Add(*(number * term for term, number in left.items())), b)


class Modulo(sympy.Function):  # type: ignore[misc]
    """`a % b` of integers, with the sign of `b`, as in Python."""

    nargs = (2,)
    is_integer = True

    @classmethod
    def eval(cls, a: sympy.Expr, b: sympy.Expr) -> sympy.Expr | None:
        if a.is_Integer and b.is_Integer:
            return sympy.Integer(int(a) % int(b))
        if b.is_Integer:
            terms = sympy.expand(_rounded_to_multiple(cls._congruent(a, b))).as_coefficients_dict()
            constant = terms.pop(sympy.S.One, sympy.S.Zero)
            # without multiples of b
            rest = sympy.Add(*(n * t for t, n in terms.items() if not (t.is_integer and n.is_Integer and n % b == 0)))
            plain = rest + constant % b
            quotient = _constant_quotient(plain, b)
            if quotient is not None:
                return plain - quotient * b
            return None if plain == a else cls(plain, b)
        return None

    @classmethod
    def _congruent(cls, a: sympy.Expr, b: sympy.Integer) -> sympy.Expr:
        """Return `a` without remainders modulo `b` in its sums and products; those inside quotients stay."""
        if isinstance(a, cls) and a.args[1] == b:
            return a.args[0]
        if a.is_Add or (a.is_Mul and a.as_coeff_Mul()[0].is_Integer):
            return a.func(*(cls._congruent(term, b) for term in a.args))
        return a


_ENDLESS = 2**62
"""PyTorch's slices without an end have the bound 2**63 - 1: no size is as large as this."""


class _Extreme(sympy.Function):  # type: ignore[misc]
    """The maximum or minimum of some integers, without operands that another always reaches."""

    is_integer = True
    sign = 1

    @classmethod
    def eval(cls, *operands: sympy.Expr) -> sympy.Expr | None:
        flat = list(itertools.chain.from_iterable(map(cls._alternatives, operands)))
        remaining: list[sympy.Expr] = []
        for a in dict.fromkeys(flat):
            if any(cls._reaches(b, a) for b in remaining):
                continue
            remaining = [b for b in remaining if not cls._reaches(a, b)] + [a]
        remaining.sort(key=lambda e: (e.is_number, str(e)))
        if len(remaining) == 1:
            return remaining[0]
        return None if tuple(remaining) == operands else cls(*remaining)

    @classmethod
    def _reaches(cls, a: sympy.Expr, b: sympy.Expr) -> bool:
        """Return whether `b` is never beyond `a` in the direction of this extreme."""
        if never_negative(cls.sign * (a - b)):
            return True
        number, towards = (b, -cls.sign) if b.is_Integer else (a, cls.sign)
        return a.is_Integer != b.is_Integer and bool(towards * number >= _ENDLESS)

    @classmethod
    def _alternatives(cls, a: sympy.Expr) -> list[sympy.Expr]:
        """Return expressions whose extreme is `a`, without nested extremes of the same direction.

        For maxima, `b + Max(c, d)` and `b - Min(-c, -d)` both give `b + c` and `b + d`.
        """
        a = _rounded_to_multiple(a)
        terms = sympy.expand(a).as_coefficients_dict()
        for term, number in terms.items():
            if isinstance(term, _Extreme) and number.is_Integer and (number > 0) == (term.sign == cls.sign):
                rest = sympy.Add(*(n * t for t, n in terms.items() if t is not term))
                return [alternative for arg in term.args for alternative in cls._alternatives(rest + number * arg)]
        return [a]


class Max(_Extreme):
    """The maximum of some integers."""

    sign = 1


class Min(_Extreme):
    """The minimum of some integers."""

    sign = -1


def never_negative(e: Any) -> bool:
    """Return whether an expression is proven to be at least 0 at all sizes in range; False if nothing is known."""
    bound = least(sympy.sympify(e))
    return bound is not None and bound >= 0


def greatest(e: sympy.Expr) -> int | None:
    """Return an upper bound of an integer expression at sizes in range; None if none is known."""
    bound = least(-e)
    return None if bound is None else -bound


@functools.lru_cache(maxsize=8192)
def least(e: sympy.Expr) -> int | None:
    """Return a lower bound of an integer expression at sizes in range; None if none is known."""
    if e.is_number:
        ceiling: int = math.ceil(e)
        return ceiling
    terms = sympy.expand(e).as_coefficients_dict()
    for term, number in terms.items():
        if isinstance(term, _Extreme):
            rest = sympy.Add(*(n * t for t, n in terms.items() if t is not term))
            lows = [least(rest + number * a) for a in term.args]
            bounded = [bound for bound in lows if bound is not None]
            if (number > 0) == (term.sign > 0):  # the largest of these alternatives
                return max(bounded, default=None)
            return min(bounded) if len(bounded) == len(lows) else None
    for term, number in terms.items():
        if isinstance(term, FloorDiv) and term.args[1].is_Integer and term.args[1] > 0:
            a, b = term.args
            quotient = (a - b + 1) / b if number > 0 else a / b
            rest = sympy.Add(*(n * t for t, n in terms.items() if t is not term))
            edge = least(a) if number > 0 else greatest(a)
            apart = None if edge is None else least(rest + number * (edge // int(b)))
            bounds = (least(rest + number * quotient), apart)
            return max((bound for bound in bounds if bound is not None), default=None)
    return _least_of_polynomial(terms.items())


def _least_of_polynomial(terms: Iterable[tuple[sympy.Expr, sympy.Number]]) -> int | None:
    """Return the least value of a sum of products of factors that are not negative.

    Every factor is written as its least value plus a non-negative rest: where no rest is subtracted, the sum is least
    when all rests are 0.
    """
    rests: dict[sympy.Expr, tuple[sympy.Symbol, int | None]] = {}
    total = sympy.S.Zero
    for term, number in terms:
        product = number
        for factor, power in term.as_powers_dict().items():
            if factor.is_number:
                product *= factor**power
                continue
            low, high = _interval(factor)
            if low is None or not power.is_Integer or power < 0 or (low < 0 and (power > 1 or not term.is_Symbol)):
                return None
            rest = rests.setdefault(factor, (sympy.Dummy(nonnegative=True), None if high is None else high - low))[0]
            product *= (low + rest) ** power
        total += product
    room = dict(rests.values())
    bound = sympy.S.Zero
    for term, number in sympy.expand(total).as_coefficients_dict().items():
        if term.is_number:
            bound += number * term
        elif number < 0:
            spans = [(room[factor], power) for factor, power in term.as_powers_dict().items()]
            if any(span is None for span, _ in spans):
                return None
            bound += number * math.prod(span**power for span, power in spans if span is not None)
    ceiling: int = math.ceil(bound)
    return ceiling


def _interval(factor: sympy.Expr) -> tuple[int | None, int | None]:
    if isinstance(factor, Size):
        return factor.low, factor.high
    if isinstance(factor, Modulo):
        divisor = factor.args[1]
        return (0, int(divisor) - 1) if divisor.is_Integer and divisor > 0 else (None, None)
    if isinstance(factor, FloorDiv):
        if factor.args[1].is_Integer and factor.args[1] > 0:
            return least(factor), greatest(factor)
        return (0 if never_negative(factor.args[0]) and never_negative(factor.args[1]) else None), None
    if isinstance(factor, _Extreme) or factor.is_Add:
        return least(factor), greatest(factor)
    return None, None


def fold_extremes(total: sympy.Expr) -> sympy.Expr:
    """Return a sum with the rest moved into its maximum or minimum, where sizes cancel out there.

    `T - Max(0, T - 3)` is `Min(T, 3)`. A maximum and a minimum that complement each other cancel.
    """
    total = _rounded_to_multiple(total)
    if not total.is_Add:
        return total
    terms = sympy.expand(total).as_coefficients_dict()
    extremes = [(term, number) for term, number in terms.items() if isinstance(term, _Extreme)]
    if len(extremes) == 2:
        return _without_complements(total, *extremes)
    if len(extremes) != 1:
        return total
    ((term, number),) = extremes
    times = abs(number)
    rest = sympy.Add(*(n * t / times for t, n in terms.items() if t is not term))
    if not rest.free_symbols or not all(n.is_Integer for n in rest.as_coefficients_dict().values()):
        return total
    sign = number / times
    inside = [sympy.expand(rest + sign * a) for a in term.args]
    before = sum(len(a.free_symbols) for a in term.args) + len(rest.free_symbols)
    if sum(len(a.free_symbols) for a in inside) >= before:
        return total
    kind = type(term) if sign > 0 else (Min if isinstance(term, Max) else Max)
    return times * kind(*inside)


def _rounded_to_multiple(total: sympy.Expr) -> sympy.Expr:
    """Return `T + Modulo(-T, 4)` as `4 * ((T + 3) // 4)`, the next multiple, and `T - Modulo(T, 4)` as `4 * (T // 4)`.

    Any other summands stay: `H + T + Modulo(T, 2) + 1` is `H + 2 * ((T + 1) // 2) + 1`.
    """
    if not total.is_Add or not total.has(Modulo):
        return total
    terms = sympy.expand(total).as_coefficients_dict()
    for term, number in terms.items():
        if isinstance(term, Modulo) and term.args[1].is_Integer and term.args[1] > 0:
            remainder, divisor = sympy.expand(term.args[0]).as_coefficients_dict(), term.args[1]
            offset = remainder.pop(sympy.S.One, sympy.S.Zero)
            rounded = {t: terms[t] / number for t in remainder if t in terms}
            if rounded and all((rounded.get(t, 0) + n) % divisor == 0 for t, n in remainder.items()):
                part = sympy.Add(*(n * t for t, n in rounded.items()))
                multiple = divisor * FloorDiv(part - offset + divisor - 1, divisor) + offset
                return _rounded_to_multiple(sympy.expand(total - number * (part + term) + number * multiple))
    return total


def _without_complements(
    total: sympy.Expr, first: tuple[sympy.Expr, sympy.Number], second: tuple[sympy.Expr, sympy.Number]
) -> sympy.Expr:
    """Return a sum with `Max(a, b) + Min(a, b)` as `a + b`: `Max(0, T - 3) + Min(T, 3)` is `T`."""
    (term, number), (other, same_number) = first, second
    if type(term) is type(other) or number != same_number or len(term.args) != 2 or len(other.args) != 2:
        return total
    (a, b), (c, d) = term.args, other.args
    for shift, rest in ((c - a, d - b), (d - a, c - b)):
        if sympy.expand(shift - rest) == 0:
            return sympy.expand(total - number * (term + other) + number * (a + b + shift))
    return total
