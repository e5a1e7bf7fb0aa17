"""Sizes of tensors: integers, or sympy expressions in the symbols of the dynamic axes.

PyTorch's own expression classes are translated into these during capture, so that this package needs no torch.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import sympy

from t2n_core.nnef.sizes.size_functions import FloorDiv, Max, Min, Modulo, Size, fold_extremes, never_negative

Dim: TypeAlias = int | sympy.Expr
Shape: TypeAlias = tuple[Dim, ...]


def symbol(name: str, low: int = 1, high: int | None = None) -> Size:
    """Return the size symbol of that name, an integer from `low` to `high`."""
    return Size(name, low, high)


def as_dim(value: Any) -> Dim:
    """Return `value` as a plain int if it is one, and a sum that contains a maximum simplified."""
    if isinstance(value, sympy.Expr):
        if value.is_Add and value.has(Max, Min, Modulo):
            value = fold_extremes(value)
        return int(value) if value.is_Integer else value
    return int(value)


def has_extremes(dim: Dim) -> bool:
    """Return whether a size contains a maximum or a minimum."""
    return not isinstance(dim, int) and dim.has(Max, Min)


def maximum(*dims: Dim) -> Dim:
    """Return the maximum of some sizes, omitting sizes that are never the largest."""
    return as_dim(Max(*map(sympy.sympify, dims)))


def minimum(*dims: Dim) -> Dim:
    """Return the minimum of some sizes, omitting sizes that are never the smallest."""
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


def within(position: Dim, size: Dim) -> Dim:
    """Return a bound of a slice as an index in [0, size]; a negative bound counts from the end.

    Raises ValueError for a bound that is negative at only some sizes in range.
    """
    if at_most(0, position):
        return minimum(position, size)
    if at_most(position, -1):
        return maximum(0, as_dim(size + position))
    raise ValueError(f"{position} counts from the end at some sizes and from the front at others")


_SOME_SIZES = random.Random(11)
_POINTS = 80
"""How many sets of sizes are tried to compare two expressions of several symbols."""
_OF_RANGE = 127
"""About how many values of a symbol with an upper bound are tried; all of them if there are fewer."""


@functools.lru_cache(maxsize=4096)
def same(a: Dim, b: Dim) -> bool:
    """Return whether both are equal at all sizes in range, as far as expanding and trying some sizes can show.

    The sizes tried are the smallest ones, both neighbours of every integer in the expressions, of their sums and
    products, and random ones up to 2000: many, since nested quotients agree at every few sizes by chance.
    """
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    if a == b or sympy.expand(a - b) == 0:
        return True
    first, second = compile_size(a), compile_size(b)
    return all(first(point) == second(point) for point in points(a, b))


def points(*dims: Dim) -> list[dict[str, int]]:
    """Return sizes of the symbols at which expressions are compared."""
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
    """Return the integers that a symbol can be, and more values of a symbol with an upper bound."""
    low, high = getattr(size, "low", 1), getattr(size, "high", None)
    if high is None:
        return [n for n in numbers if n >= low] or [low + n for n in numbers]
    step = (high - low) // _OF_RANGE | 1  # odd, to cover even and odd values
    return [*(n for n in numbers if low <= n <= high), *range(low, high + 1, step), high]


def solve_symbol(extent: sympy.Expr, size: sympy.Expr) -> sympy.Expr:
    """Solve a linear `extent == size` for its one symbol: `(size - 1) // 4` for `4 * T + 1`."""
    (symbol,) = extent.free_symbols
    terms = sympy.expand(extent)
    return FloorDiv(size - terms.coeff(symbol, 0), terms.coeff(symbol, 1))


def evaluate(d: Dim, sizes: Mapping[str, int]) -> int:
    """Return the value of `d` when its symbols have these sizes.

    Raises KeyError for a symbol without size, ValueError if the value is not an integer.
    """
    if isinstance(d, int):
        return d
    value = compile_size(d)(sizes)
    if value != int(value):
        raise ValueError(f"{d} is {value} for {dict(sizes)}: not an integer")
    return int(value)


@functools.lru_cache(maxsize=4096)
def compile_size(d: Dim) -> Callable[[Mapping[str, int]], Any]:
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
    raise ValueError(f"{e} is not an expression of sizes")


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
    "compile_size",
    "evaluate",
    "floor_div",
    "has_extremes",
    "is_static",
    "maximum",
    "minimum",
    "points",
    "product",
    "same",
    "shape_text",
    "symbol",
    "symbols_of",
    "within",
]
