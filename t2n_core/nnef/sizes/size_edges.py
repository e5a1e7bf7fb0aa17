"""The sizes at which an expression of sizes changes its branch: both sides of every extreme, and of every divisor."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

import sympy

from t2n_core.nnef.sizes.dims import Dim, FloorDiv, Max, Min, Modulo, Size, compile_size

_SCANNED = 300
_FAR = tuple(1 << exponent for exponent in range(9, 17))
_MOST = 8
"""Edges of one symbol that are worth a run of the model."""
_DIVISORS = range(2, 33)


def edges(dims: Iterable[Dim]) -> dict[str, list[int]]:
    """Return the sizes of each symbol at which a size expression changes its form.

    They are the sizes just before and at each point where another operand of a maximum or minimum becomes the larger
    one, and a multiple of each divisor and its successor; at most eight, the smallest first.
    """
    by_symbol: dict[str, set[int]] = {}
    for dim in {d for d in dims if not isinstance(d, int)}:
        for part in dim.atoms(Max, Min, FloorDiv, Modulo):
            symbols = part.free_symbols
            if len(symbols) == 1:
                (symbol,) = symbols
                by_symbol.setdefault(symbol.name, set()).update(_edges_of(part, symbol))
    return {name: sorted(sizes)[:_MOST] for name, sizes in by_symbol.items()}


def _edges_of(part: sympy.Expr, symbol: Size) -> Iterator[int]:
    if isinstance(part, FloorDiv | Modulo):
        divisor = part.args[1]
        if divisor.is_Integer and int(divisor) in _DIVISORS:
            multiple = -(-max(symbol.low, int(divisor)) // int(divisor)) * int(divisor)
            yield from _in_range(symbol, (multiple, multiple + 1))
        return
    for operand, other in itertools.combinations(part.args, 2):
        difference = compile_size(operand - other)

        def is_greater(n: int, difference: Callable[[dict[str, int]], int] = difference) -> bool:
            return difference({symbol.name: n}) > 0

        sizes = list(_in_range(symbol, (*range(symbol.low, symbol.low + _SCANNED), *_FAR)))
        for before, after in itertools.pairwise(sorted(set(sizes))):
            if is_greater(before) != is_greater(after):
                yield from _in_range(symbol, _turn(is_greater, before, after))
                break


def _turn(is_greater: Callable[[int], bool], before: int, after: int) -> tuple[int, int, int]:
    while after - before > 1:
        middle = (before + after) // 2
        before, after = (middle, after) if is_greater(middle) == is_greater(before) else (before, middle)
    return before, after, after + 1


def _in_range(symbol: Size, sizes: Iterable[int]) -> Iterator[int]:
    return (n for n in sizes if n >= symbol.low and (symbol.high is None or n <= symbol.high))
