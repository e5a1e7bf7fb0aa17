"""Sizes of tensors: plain integers, or sympy expressions in the symbols of the dynamic axes.

PyTorch's own expression classes are translated into these on capture, so that nothing here knows torch.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import sympy

from t2n_core.nnef.sizes.size_functions import FloorDiv, Max, Min, Modulo, Size, folded, never_negative

Dim: TypeAlias = int | sympy.Expr
Shape: TypeAlias = tuple[Dim, ...]


def symbol(name: str, low: int = 1, high: int | None = None) -> Size:
    """Return the size symbol of that name, an integer from `low` to `high`."""
    return Size(name, low, high)


def as_dim(value: Any) -> Dim:
    """Return `value` as a plain int where it is one, and a sum with a maximum in it in its shorter form."""
    if isinstance(value, sympy.Expr):
        if value.is_Add and value.has(Max, Min, Modulo):
            value = folded(value)
        return int(value) if value.is_Integer else value
    return int(value)


def has_extremes(dim: Dim) -> bool:
    """Return whether a size holds a maximum or a minimum."""
    return not isinstance(dim, int) and dim.has(Max, Min)


def maximum(*dims: Dim) -> Dim:
    """Return the greatest of some sizes, without those that are never the greatest."""
    return as_dim(Max(*map(sympy.sympify, dims)))


def minimum(*dims: Dim) -> Dim:
    """Return the least of some sizes, without those that are never the least."""
    return as_dim(Min(*map(sympy.sympify, dims)))


def at_most(a: Dim, b: Dim) -> bool:
    """Return whether `a <= b` is proven for all sizes in range."""
    return never_negative(sympy.sympify(b) - a)


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


def within(place: Dim, size: Dim) -> Dim:
    """Return a bound of a slice as a place in [0, size]; a negative one counts from the end.

    Raises ValueError for one that is negative at some sizes in range and not at others.
    """
    if at_most(0, place):
        return minimum(place, size)
    if at_most(place, -1):
        return maximum(0, as_dim(size + place))
    raise ValueError(f"{place} counts from the end at some sizes and from the front at others")


_SOME_SIZES = random.Random(11)
_POINTS = 80
"""How many sets of sizes two expressions of several symbols are compared at."""
_OF_RANGE = 127
"""About how many numbers a symbol with a greatest value is tried at; all of them if there are fewer."""


@functools.lru_cache(maxsize=4096)
def same(a: Dim, b: Dim) -> bool:
    """Return whether both are equal at all sizes in range, as far as expanding and trying some sizes can tell.

    The sizes tried are the smallest ones, both sides of every number in the expressions, of their sums and products,
    and random ones up to 2000: many, since halves of halves agree at every few of them by chance.
    """
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    if a == b or sympy.expand(a - b) == 0:
        return True
    first, second = compiled(a), compiled(b)
    return all(first(point) == second(point) for point in _points(a, b))


def _points(*dims: Dim) -> list[dict[str, int]]:
    sizes = sorted({s for d in dims if isinstance(d, sympy.Expr) for s in d.free_symbols}, key=str)
    numbers = sorted({abs(int(n)) for d in dims if isinstance(d, sympy.Expr) for n in d.atoms(sympy.Integer)})[:12]
    pairs = itertools.combinations_with_replacement(numbers, 2)
    edges = {*numbers, *itertools.chain.from_iterable((a * b, a + b) for a, b in pairs)}
    tried = sorted({edge + step for edge in edges for step in (-1, 0, 1) if 0 <= edge + step <= 4096})
    if len(sizes) == 1:
        (only,) = sizes
        return [{only.name: n} for n in _in_range(only, [*range(9), *tried, *_RANDOM])]
    values = {s: _in_range(s, [*range(9), *tried]) for s in sizes}
    chance = random.Random(len(sizes))
    wide = {s: _in_range(s, _RANDOM) for s in sizes}
    return [
        {s.name: chance.choice(values[s] if chance.random() < 0.5 else wide[s]) for s in sizes} for _ in range(_POINTS)
    ]


_RANDOM = [_SOME_SIZES.randint(7, 2000) for _ in range(40)]


def _in_range(size: sympy.Symbol, numbers: Iterable[int]) -> list[int]:
    """Return those of the numbers that a symbol can be, and of a symbol with a greatest value some of its own."""
    low, high = getattr(size, "low", 1), getattr(size, "high", None)
    if high is None:
        return [n for n in numbers if n >= low] or [low + n for n in numbers]
    step = (high - low) // _OF_RANGE | 1  # odd, to meet even and odd numbers
    return [*(n for n in numbers if low <= n <= high), *range(low, high + 1, step), high]


def solved(extent: sympy.Expr, size: sympy.Expr) -> sympy.Expr:
    """Return the one symbol of a linear `extent`, where that is `size`: `(size - 1) // 4` of `4 * T + 1`."""
    (symbol,) = extent.free_symbols
    terms = sympy.expand(extent)
    return FloorDiv(size - terms.coeff(symbol, 0), terms.coeff(symbol, 1))


def evaluate(d: Dim, sizes: Mapping[str, int]) -> int:
    """Return the number that `d` is when its symbols have these sizes.

    Raises KeyError for a symbol without size, ValueError where the number is no integer.
    """
    if isinstance(d, int):
        return d
    value = compiled(d)(sizes)
    if value != int(value):
        raise ValueError(f"{d} is {value} for {dict(sizes)}: not an integer")
    return int(value)


@functools.lru_cache(maxsize=4096)
def compiled(d: Dim) -> Callable[[Mapping[str, int]], Any]:
    """Return `d` as a function of the sizes by name: hundreds of times as fast as a substitution."""
    function: Callable[[Mapping[str, int]], Any] = eval(
        f"lambda sizes: {_python(sympy.sympify(d))}", {"Fraction": Fraction}
    )
    return function


def _python(e: sympy.Expr) -> str:
    if e.is_Symbol:
        return f"sizes[{e.name!r}]"
    if e.is_Integer:
        return f"({int(e)})"
    if e.is_Rational:
        return f"Fraction({int(e.p)}, {int(e.q)})"
    if e.is_Float:
        return repr(float(e))
    parts = [_python(a) for a in e.args]
    if e.is_Add or e.is_Mul:
        return f"({(' + ' if e.is_Add else ' * ').join(parts)})"
    if e.is_Pow:
        return f"({parts[0]} ** {parts[1]})"
    if isinstance(e, FloorDiv | Modulo):
        return f"({parts[0]} {'//' if isinstance(e, FloorDiv) else '%'} {parts[1]})"
    if isinstance(e, Max | Min):
        return f"{type(e).__name__.lower()}({', '.join(parts)})"
    raise ValueError(f"{e} is no expression of sizes")


def text(d: Dim, name_of: Callable[[str], str] = str, *, of_two: bool = False) -> str:
    """Return `d` in the syntax of tract's NNEF: + - * / with every operation in parentheses, never a unary minus.

    With `of_two` a sum has two terms, as in `((S+T)+1)`. Raises ValueError for an expression that has no such form (a
    modulo by a symbol, a fraction).
    """
    write = functools.partial(text, name_of=name_of, of_two=of_two)
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
        first, *others = [write(a) for a in plus] or ["0"]
        terms = [*(f"+{one}" for one in others), *(f"-{write(a)}" for a in minus)]
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
        over, quotient = _raised(d.args[0], int(d.args[1]))
        if quotient != 0:
            up = f"({write(over)}/{d.args[1]})"
            return f"(0-{up})" if quotient is None else f"({up}-{write(quotient)})"
        return f"({write(d.args[0])}/{d.args[1]})"
    if isinstance(d, Modulo) and d.args[1].is_Integer and d.args[1] > 0:
        over, quotient = _raised(d.args[0], int(d.args[1]))
        a, b = write(over), d.args[1]
        if quotient is None:
            return f"((({a}/{b})*{b})-{write(-d.args[0])})"
        whole = f"({a}/{b})"
        if isinstance(over, FloorDiv) and over.args[1].is_Integer and over.args[1] > 0:
            whole = write(FloorDiv(over, b))  # before 0.22 some quotients of quotients take minutes to load
        return f"({a}-({whole}*{b}))"
    if isinstance(d, Max | Min):
        first, *rest = (write(a) for a in d.args)
        return functools.reduce(lambda a, b: f"{type(d).__name__.lower()}({a},{b})", rest, first)
    raise ValueError(f"{d} cannot be expressed in NNEF")


def _product_text(factors: Sequence[str]) -> str:
    """Return a product of two factors at a time: before 0.22, conditions of a range have no products of three."""
    return functools.reduce(lambda left, right: f"({left}*{right})", factors)


def _factors(d: sympy.Expr) -> list[sympy.Expr]:
    """Return the factors of a product, a power of an integer as its base as often: engines compare `B*T*T` with
    the product of three extents and do not see that it is `B*(T*T)`.
    """
    powers = [(a.base, int(a.exp)) if a.is_Pow and a.exp.is_Integer and a.exp > 0 else (a, 1) for a in d.args]
    return [base for base, times in powers for _ in range(times)]


def _is_misread(a: sympy.Expr, b: int) -> bool:
    """Return whether engines round a quotient otherwise, since a part of the dividend is a remainder.

    A dividend in which a symbol is subtracted they negate before they divide: they read `(-T % 4 + 2) // 3`, of
    `((T + 3) / 4) * 4 - T + 2`, as 1 where T is 4. Before 0.23.0 they take multiples of the divisor out of a dividend,
    and divide what is left towards zero: `(1 - (2 * T / 3) * 3) / 2 + T` for `(2 * T % 3 + 1) // 2`.
    """
    if b <= 0:
        return False
    over, _ = _raised(a, b)
    terms = sympy.expand(over).as_coefficients_dict()
    if not any(isinstance(term, FloorDiv | Modulo) for term in terms):
        return False
    spelled = _spelled_out(over).as_coefficients_dict()
    if any(number < 0 and term.is_Symbol and terms.get(term, 0) >= 0 for term, number in spelled.items()):
        return True
    left = sympy.Add(*(number * term for term, number in spelled.items() if number % b))
    return any(value < 0 and value % b for value in map(compiled(left), _points(left)))


def _spelled_out(a: sympy.Expr) -> sympy.Expr:
    """Return a dividend with the sums that `text` makes of its remainders and of quotients of what can be negative."""
    terms = sympy.expand(a).as_coefficients_dict().items()
    return sympy.expand(sympy.Add(*(number * _as_sum(term) for term, number in terms)))


def _as_sum(term: sympy.Expr) -> sympy.Expr:
    if not isinstance(term, FloorDiv | Modulo) or not term.args[1].is_Integer or term.args[1] <= 0:
        return term
    over, quotient = _raised(term.args[0], int(term.args[1]))
    whole = sympy.Function.__new__(FloorDiv, over, term.args[1], evaluate=False)
    if isinstance(term, FloorDiv):
        return -whole if quotient is None else whole - quotient
    return term.args[1] * whole + term.args[0] if quotient is None else over - term.args[1] * whole


def _raised(a: sympy.Expr, b: int) -> tuple[sympy.Expr, sympy.Expr | None]:
    """Return (a + b * q, q) for the least q that leaves no negative coefficient; (a, 0) where no symbol has one.

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
    """Return a shape as messages show it: `[2, T, 80]`."""
    return "[" + ", ".join(str(d) for d in shape) + "]"


__all__ = [
    "Dim",
    "FloorDiv",
    "Max",
    "Min",
    "Modulo",
    "Shape",
    "Size",
    "as_dim",
    "at_most",
    "compiled",
    "evaluate",
    "floor_div",
    "has_extremes",
    "is_static",
    "maximum",
    "minimum",
    "product",
    "same",
    "shape_text",
    "symbol",
    "symbols_of",
    "text",
    "within",
]
