"""Printer of sizes in tract's NNEF syntax."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import sympy

from t2n_core.nnef.sizes.dims import Dim, FloorDiv, Max, Min, Modulo, compile_size, points


def size_text(d: Dim, *, of_two: bool = False) -> str:
    """Return `d` in tract's syntax: + - * / with every operation in parentheses, never a unary minus.

    With `of_two` a sum has two terms, as in `((S+T)+1)`. Raises ValueError for an expression that cannot be written
    so (a modulo by a symbol, a fraction).
    """
    write = functools.partial(size_text, of_two=of_two)
    if isinstance(d, int):
        return str(d)
    if d.is_Integer:
        return str(int(d))
    if d.is_Symbol:
        return str(d.name)
    if d.is_Add:
        plus = [a for a in d.args if not a.could_extract_minus_sign()]
        minus = [-a for a in d.args if a.could_extract_minus_sign()]
        plus.sort(key=lambda a: (a.is_number, str(a)))  # symbols first: `(T-1)`, not `(0-1+T)`
        minus.sort(key=str)
        first, *others = [write(a) for a in plus] or ["0"]
        terms = [*(f"+{term}" for term in others), *(f"-{write(a)}" for a in minus)]
        if of_two:
            return functools.reduce(lambda left, term: f"({left}{term})", terms, first)
        return f"({first}{''.join(terms)})"
    if d.is_Mul:
        if d.could_extract_minus_sign():
            return f"(0-{write(-d)})"
        factors = sorted(_factors(d), key=lambda a: (a.is_number, str(a)))
        if any(a.is_Rational and not a.is_Integer for a in factors):
            raise ValueError(f"{d} has a fraction")
        return _product_text([write(a) for a in factors])
    if d.is_Pow and d.exp.is_Integer and d.exp > 0:
        return _product_text([write(d.base)] * int(d.exp))
    if isinstance(d, FloorDiv | Modulo) and d.args[1].is_Integer and _is_misread(d.args[0], int(d.args[1])):
        raise ValueError(f"{d} cannot be written so that engines divide it exactly")
    if isinstance(d, FloorDiv) and d.args[1].is_Integer and d.args[1] > 0:
        over, quotient = _without_negatives(d.args[0], int(d.args[1]))
        if quotient != 0:
            up = f"({write(over)}/{d.args[1]})"
            return f"(0-{up})" if quotient is None else f"({up}-{write(quotient)})"
        return f"({write(d.args[0])}/{d.args[1]})"
    if isinstance(d, Modulo) and d.args[1].is_Integer and d.args[1] > 0:
        over, quotient = _without_negatives(d.args[0], int(d.args[1]))
        a, b = write(over), d.args[1]
        if quotient is None:
            return f"((({a}/{b})*{b})-{write(-d.args[0])})"
        quotient_text = f"({a}/{b})"
        if isinstance(over, FloorDiv) and over.args[1].is_Integer and over.args[1] > 0:
            quotient_text = write(FloorDiv(over, b))  # before 0.22 some nested quotients take minutes to load
        return f"({a}-({quotient_text}*{b}))"
    if isinstance(d, Max | Min):
        first, *rest = (write(a) for a in d.args)
        return functools.reduce(lambda a, b: f"{type(d).__name__.lower()}({a},{b})", rest, first)
    raise ValueError(f"{d} cannot be expressed in NNEF")


def _product_text(factors: Sequence[str]) -> str:
    """Return nested products of two factors: before 0.22, conditions of a range have no products of three."""
    return functools.reduce(lambda left, right: f"({left}*{right})", factors)


def _factors(d: sympy.Expr) -> list[sympy.Expr]:
    """Return the factors of a product, with a power as its repeated base.

    Engines compare `B*T*T` with the product of three extents and do not see that it is `B*(T*T)`.
    """
    powers = [(a.base, int(a.exp)) if a.is_Pow and a.exp.is_Integer and a.exp > 0 else (a, 1) for a in d.args]
    return [base for base, times in powers for _ in range(times)]


def _is_misread(a: sympy.Expr, b: int) -> bool:
    """Return whether engines round a quotient differently, since a part of the dividend is a remainder.

    They negate a dividend in which a symbol is subtracted before they divide: they evaluate `(-T % 4 + 2) // 3`,
    written as `((T + 3) / 4) * 4 - T + 2`, to 1 where T is 4. Before 0.23.0 they move multiples of the divisor out of a
    dividend, and divide the rest towards zero: `(1 - (2 * T / 3) * 3) / 2 + T` for `(2 * T % 3 + 1) // 2`.
    """
    if b <= 0:
        return False
    over, _ = _without_negatives(a, b)
    terms = sympy.expand(over).as_coefficients_dict()
    if not any(isinstance(term, FloorDiv | Modulo) for term in terms):
        return False
    spelled = _expanded_text(over).as_coefficients_dict()
    if any(number < 0 and term.is_Symbol and terms.get(term, 0) >= 0 for term, number in spelled.items()):
        return True
    left = sympy.Add(*(number * term for term, number in spelled.items() if number % b))
    return any(value < 0 and value % b for value in map(compile_size(left), points(left)))


def _expanded_text(a: sympy.Expr) -> sympy.Expr:
    """Return a dividend with the sums that `size_text` writes for remainders and for quotients that can be negative."""
    terms = sympy.expand(a).as_coefficients_dict().items()
    return sympy.expand(sympy.Add(*(number * _as_sum(term) for term, number in terms)))


def _as_sum(term: sympy.Expr) -> sympy.Expr:
    if not isinstance(term, FloorDiv | Modulo) or not term.args[1].is_Integer or term.args[1] <= 0:
        return term
    over, quotient = _without_negatives(term.args[0], int(term.args[1]))
    division = sympy.Function.__new__(FloorDiv, over, term.args[1], evaluate=False)
    if isinstance(term, FloorDiv):
        return -division if quotient is None else division - quotient
    return term.args[1] * division + term.args[0] if quotient is None else over - term.args[1] * division


def _without_negatives(a: sympy.Expr, b: int) -> tuple[sympy.Expr, sympy.Expr | None]:
    """Return (a + b * q, q) for the least q that leaves no negative coefficient; (a, 0) if no symbol has one.

    Engines divide towards zero, so multiples of the divisor are added to what can be negative. A plain `-T // b` is the
    negative of the quotient rounded up: (T + b - 1, None).
    """
    terms = sympy.expand(a).as_coefficients_dict()
    if not any(number < 0 and not term.is_number for term, number in terms.items()):
        return a, sympy.Integer(0)
    if all(number < 0 for number in terms.values()):
        return sympy.expand(b - 1 - a), None
    quotient = sum((-(number // b) * term for term, number in terms.items() if number < 0), sympy.Integer(0))
    return sympy.expand(a + b * quotient), quotient
