"""Sizes of tensors: plain integers, or sympy expressions in the symbols of the dynamic axes.

PyTorch's own expression classes are translated into these on capture, so that nothing here knows torch.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import sympy

Dim: TypeAlias = int | sympy.Expr
Shape: TypeAlias = tuple[Dim, ...]


class FloorDiv(sympy.Function):  # type: ignore[misc]
    """`a // b` of integers, with as little as can be under it: a multiple of a number `b` comes out, and a quotient of
    a quotient is one. So the length behind many strided convolutions is one quotient of the length before them, where
    tract 0.19 takes minutes for quotients of quotients.
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
            taken = _without_multiples(a, b)
            if taken is not None:
                return taken
        if not a.is_polynomial() or not b.is_polynomial():
            return None
        sizes = sorted(a.free_symbols | b.free_symbols, key=str)
        if not sizes:
            return None
        quotient, rest = sympy.div(a, b, *sizes, domain="QQ")
        if rest == 0 and all(c.is_Integer for c in sympy.Poly(quotient, *sizes).coeffs()):
            return quotient
        return None


def _without_multiples(a: sympy.Expr, b: sympy.Integer) -> sympy.Expr | None:
    """`a // b` as multiples of `b`, divided, and the quotient of what is left; None where that is `a` itself."""
    terms = sympy.expand(a).as_coefficients_dict()
    if not all(number.is_Integer and term.is_integer for term, number in terms.items()):
        return None
    constant = terms.pop(sympy.S.One, sympy.S.Zero)
    whole = constant // b + sympy.Add(*(number / b * term for term, number in terms.items() if number % b == 0))
    constant %= b
    left = {term: number for term, number in terms.items() if number % b != 0}
    if not left:
        return whole
    ((inner, times), *more) = left.items()
    if not more and times == 1 and isinstance(inner, FloorDiv) and inner.args[1].is_Integer and inner.args[1] > 0:
        return whole + FloorDiv(inner.args[0] + constant * inner.args[1], inner.args[1] * b)
    if whole == 0:
        return None
    return whole + FloorDiv(constant + sympy.Add(*(number * term for term, number in left.items())), b)


class Modulo(sympy.Function):  # type: ignore[misc]
    """`a % b` of integers, with the sign of `b`, as in Python."""

    nargs = (2,)
    is_integer = True

    @classmethod
    def eval(cls, a: sympy.Expr, b: sympy.Expr) -> sympy.Expr | None:
        if a.is_Integer and b.is_Integer:
            return sympy.Integer(int(a) % int(b))
        if b.is_Integer:
            # what is a multiple of b, or a rest modulo b already, does not matter
            inner = a.replace(lambda e: isinstance(e, cls) and e.args[1] == b, lambda e: e.args[0])
            constant, rest = sympy.expand(inner).as_coeff_Add()
            plain = rest + constant % b
            return None if plain == a else cls(plain, b)
        return None


def symbol(name: str) -> sympy.Symbol:
    """The size symbol of that name: a positive integer."""
    return sympy.Symbol(name, integer=True, positive=True)


def as_dim(value: Any) -> Dim:
    """`value` as a plain int where it is one."""
    if isinstance(value, sympy.Expr):
        return int(value) if value.is_Integer else value
    return int(value)


def is_static(shape: Iterable[Dim]) -> bool:
    return all(isinstance(d, int) for d in shape)


def symbols_of(dims: Iterable[Dim]) -> set[str]:
    return {s.name for d in dims if isinstance(d, sympy.Expr) for s in d.free_symbols}


def product(dims: Iterable[Dim]) -> Dim:
    total: Dim = 1
    for d in dims:
        total = total * d
    return as_dim(total)


def floor_div(a: Dim, b: Dim) -> Dim:
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    return as_dim(FloorDiv(sympy.sympify(a), sympy.sympify(b)))


_SOME_SIZES = random.Random(11)
PROBES = [tuple(_SOME_SIZES.randint(7, 2000) for _ in range(16)) for _ in range(40)]
"""Sizes at which two expressions are compared: many, since halves of halves agree at every few of them by chance."""


@functools.lru_cache(maxsize=4096)
def same(a: Dim, b: Dim) -> bool:
    """True if both are equal for all sizes, as far as expanding and probing some sizes can tell."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    if a == b or sympy.expand(a - b) == 0:
        return True
    names = sorted(symbols_of((a, b)))
    return all(
        evaluate(a, dict(zip(names, point, strict=False))) == evaluate(b, dict(zip(names, point, strict=False)))
        for point in PROBES
    )


def evaluate(d: Dim, sizes: Mapping[str, int]) -> int:
    """The number that `d` is when its symbols have these sizes. Raises KeyError for a symbol without size."""
    if isinstance(d, int):
        return d
    value = d.subs({s: sizes[s.name] for s in d.free_symbols})
    if not value.is_Integer:
        raise ValueError(f"{d} is {value} for {dict(sizes)}: not an integer")
    return int(value)


def text(d: Dim, name_of: Callable[[str], str] = str) -> str:
    """`d` in the expression syntax of tract's NNEF: + - * / with every operation in parentheses, never a unary minus.

    Raises ValueError for an expression that has no such form (a modulo by a symbol, a maximum, ...).
    """
    if isinstance(d, int):
        return str(d)
    if d.is_Integer:
        return str(int(d))
    if d.is_Symbol:
        return name_of(d.name)
    if d.is_Add:
        plus = [a for a in d.args if not a.could_extract_minus_sign()]
        minus = [-a for a in d.args if a.could_extract_minus_sign()]
        plus.sort(key=lambda a: (a.is_number, str(a)))  # symbols first: `(T-1)`, not `(0-1+T)`
        minus.sort(key=str)
        head = "+".join(text(a, name_of) for a in plus) or "0"
        return f"({head}{''.join('-' + text(a, name_of) for a in minus)})"
    if d.is_Mul:
        if d.could_extract_minus_sign():
            return f"(0-{text(-d, name_of)})"
        factors = sorted(d.args, key=lambda a: (a.is_number, str(a)))
        if any(a.is_Rational and not a.is_Integer for a in factors):
            raise ValueError(f"{d} has a fraction")
        return f"({'*'.join(text(a, name_of) for a in factors)})"
    if d.is_Pow and d.exp.is_Integer and d.exp > 0:
        return f"({'*'.join([text(d.base, name_of)] * int(d.exp))})"
    if isinstance(d, FloorDiv) and d.args[1].is_Integer and d.args[1] > 0:
        over, quotient = _raised(d.args[0], int(d.args[1]))
        if quotient != 0:
            up = f"({text(over, name_of)}/{d.args[1]})"
            return f"(0-{up})" if quotient is None else f"({up}-{text(quotient, name_of)})"
        return f"({text(d.args[0], name_of)}/{d.args[1]})"
    if isinstance(d, Modulo) and d.args[1].is_Integer and d.args[1] > 0:
        over, quotient = _raised(d.args[0], int(d.args[1]))
        a, b = text(over, name_of), d.args[1]
        if quotient is None:
            return f"((({a}/{b})*{b})-{text(-d.args[0], name_of)})"
        return f"({a}-(({a}/{b})*{b}))"
    raise ValueError(f"{d} has no form in NNEF")


def _raised(a: sympy.Expr, b: int) -> tuple[sympy.Expr, sympy.Expr | None]:
    """(a + b * q, q) for the least q that leaves no negative coefficient; (a, 0) where no symbol has one.

    Engines divide towards zero: what can be negative is raised by multiples of the divisor before. `-T // b` as a whole
    is the negative of the quotient rounded up: (T + b - 1, None).
    """
    terms = sympy.expand(a).as_coefficients_dict()
    if not any(number < 0 and not term.is_number for term, number in terms.items()):
        return a, sympy.Integer(0)
    if all(number < 0 for number in terms.values()):
        return sympy.expand(b - 1 - a), None
    quotient = sum((-(number // b) * term for term, number in terms.items() if number < 0), sympy.Integer(0))
    return sympy.expand(a + b * quotient), quotient


def shape_text(shape: Sequence[Dim]) -> str:
    """For messages: `[2, T, 80]`."""
    return "[" + ", ".join(str(d) for d in shape) + "]"
