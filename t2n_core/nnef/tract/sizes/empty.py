"""Exclusion of sizes at which a tensor is empty, where an operator of the engine fails on empty tensors."""

from __future__ import annotations

import sympy

from t2n_core.nnef.sizes.dims import Shape, at_most, compile_size, symbol
from t2n_core.nnef.sizes.ranges import SizeRange

_LARGEST = 1 << 12


def without_empty(sizes: SizeRange, shape: Shape) -> SizeRange:
    """Return the part of a range in which no axis of a shape is empty.

    Only axes whose size grows with one symbol narrow the range. An axis that is the symbol itself is left to the
    declared range, and so is an axis that shrinks as its symbol grows.
    """
    for extent in shape:
        if isinstance(extent, int) or extent.is_Symbol or at_most(1, extent) or len(extent.free_symbols) != 1:
            continue
        (size,) = extent.free_symbols
        low, high = sizes.bounds[size.name]
        length = compile_size(extent)
        least = next((n for n in range(low, _LARGEST) if length({size.name: n}) >= 1), low)
        if (
            least > low
            and (high is None or least <= high)
            and all(length({size.name: n}) >= 1 for n in range(least, min(4 * least, high or 4 * least) + 1))
        ):
            sizes = sizes.narrowed(sympy.Ge(symbol(size.name), least, evaluate=False))
    return sizes
