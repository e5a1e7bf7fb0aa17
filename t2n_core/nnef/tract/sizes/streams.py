"""Sizes in a stream, which is longer than all that a model drops at its ends."""

from __future__ import annotations

from typing import Any

import sympy

from t2n_core.nnef.sizes.dims import Dim, Shape, Size, as_dim, evaluate, has_extremes, symbols_of
from t2n_core.nnef.sizes.ranges import SizeRange

_LONGEST = 1 << 14
"""Extremes that are still open for a stream of this many steps stay."""


def in_stream(argument: Any, sizes: SizeRange, name: str, *, of_begin: bool = False) -> tuple[Any, SizeRange]:
    """Return an argument of an operation with sizes as they are in a stream, and the part of a range where they hold.

    `name` is the symbol of the time axis. `Max(T - 3, 0)` is `T - 3` where T >= 3. `Min(T, 3)` is 3 there as the begin
    of a slice, from which the engine computes the delay of a stream: 0.23 substitutes the length of a pulse for T, and
    older releases take no symbol there. Elsewhere it stays, since an axis of 3 elements is no stream.
    """
    if isinstance(argument, list | tuple):
        parts = []
        for item in argument:
            part, sizes = in_stream(item, sizes, name, of_begin=of_begin)
            parts.append(part)
        return type(argument)(parts), sizes
    if not isinstance(argument, sympy.Expr) or not has_extremes(argument) or name not in symbols_of([argument]):
        return argument, sizes
    low, high = sizes.bounds[name]
    longest = _LONGEST if high is None else min(high, _LONGEST)
    simple = _longer(argument, name, longest)
    if has_extremes(simple) or (isinstance(simple, int) and not of_begin):
        return argument, sizes
    most = next(
        steps for steps in (1 << power for power in range(32)) if not has_extremes(_longer(argument, name, steps))
    )
    least = next(steps for steps in range(most // 2, most + 1) if not has_extremes(_longer(argument, name, steps)))
    return simple, sizes.narrowed(**{name: (max(low, least), high)})


def with_a_step(count: Dim, sizes: SizeRange, name: str) -> SizeRange:
    """Return the part of a range with a number of steps of at least 1, where the symbol of the time axis decides it."""
    if symbols_of([count]) != {name}:
        return sizes
    low, high = sizes.bounds[name]
    steps = range(low, 1 + (_LONGEST if high is None else high))
    least = next((size for size in steps if evaluate(count, {name: size}) > 0), low)
    return sizes.narrowed(**{name: (least, high)})


def are_plain(shape: Shape, name: str) -> bool:
    """Return whether no size is computed from this symbol: the engine counts the steps of a pulse in symbols."""
    return all(isinstance(size, int) or size.is_Symbol or name not in symbols_of([size]) for size in shape)


def _longer(size: sympy.Expr, name: str, least: int) -> Dim:
    """Return a size simplified for a symbol of at least `least` steps."""
    symbols = {
        symbol: Size(name, max(symbol.low, least), symbol.high) for symbol in size.free_symbols if symbol.name == name
    }
    simple = size.xreplace(symbols)
    return as_dim(simple.xreplace({longer: symbol for symbol, longer in symbols.items()}))
