"""Sizes as values of the graph, in any dtype, and positions along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy

from t2n_core.errors import LowerError
from t2n_core.nnef.emitter import Expected
from t2n_core.nnef.graph import FLOAT64, INT64, Value
from t2n_core.nnef.sizes import dims
from t2n_core.nnef.sizes.dims import Dim, FloorDiv, Modulo, at_most, solve_symbol, symbols_of
from t2n_core.nnef.tract.barriers import barrier
from t2n_core.nnef.tract.builder import TractBuilder
from t2n_core.nnef.tract.sizes.arithmetic import signed_parts, with_quotients_subtracted


class SizeValues:
    """Writes sizes of dynamic axes for one graph."""

    def __init__(self, g: TractBuilder) -> None:
        self._g = g
        self._readable: set[str] = set()

    def make_readable(self, names: set[str]) -> None:
        """Make these symbols readable by the operations that follow.

        A size is read from the first input that has the symbol itself as an extent, or else a multiple of it. The value
        has the symbol's name: old releases know symbols only inside `external`, but all know values. Raises LowerError
        for a symbol that no input defines.
        """
        g = self._g
        for name in sorted(names - self._readable):
            self._readable.add(name)
            source, axis = self._defining_axis(name)
            node, g.node = g.node, type(g.node)(f"size_of_{name}", None, ())
            sizes = g.tract_core_shape_of(source, out=Expected((source.rank,), INT64))
            size = g.squeeze(g.slice(sizes, axes=[0], begin=[axis], end=[axis + 1]), axes=[0])
            extent = source.shape[axis]
            if isinstance(extent, sympy.Symbol):
                size.name = name
            else:
                self._readable.add(size.name)
                solution = solve_symbol(extent, dims.symbol(size.name))
                results = [Expected((), INT64)]
                (part,) = g.write("tract_core_cast", {"input": solution, "to": "tdim"}, results)
                part.name = name
            g.node = node

    def _defining_axis(self, name: str) -> tuple[Value, int]:
        """Return an input and the axis that defines a symbol, preferably without arithmetic."""
        places = [
            (value, axis, extent)
            for value in self._g.graph.inputs
            for axis, extent in enumerate(value.shape)
            if not isinstance(extent, int) and symbols_of([extent]) == {name}
        ]
        if not places:
            raise LowerError(f"no input has the size {name} as an extent", origin=self._g.node.origin)
        value, axis, _ = min(places, key=lambda candidate: not candidate[2].is_Symbol)
        return value, axis

    def scalar(self, dim: Dim, dtype: np.dtype[Any]) -> Value:
        """Return a size as a tensor of rank 0.

        A difference of a quotient and another size is subtracted as a tensor if it may be negative: the engine would
        merge it into one quotient, which it rounds towards zero.
        """
        if isinstance(dim, int):
            return self._g.constant(np.asarray(dim, dtype=dtype))
        if dtype == FLOAT64 and self._g.traits.follows_sizes:  # 0.23.0 has no `abs` of float64 to hide a formula
            return self._g.cast(self.scalar(dim, INT64), dtype)
        size = with_quotients_subtracted(dim)
        added, subtrahend = signed_parts(size)
        if subtrahend != 0 and not at_most(0, size) and isinstance(added, sympy.Expr) and added.has(FloorDiv, Modulo):
            difference = self._g.sub(self.scalar(added, INT64), self.scalar(subtrahend, INT64))
            return self._g.cast(difference, dtype)
        arguments = {"input": size, "to": self._g.type_name(dtype)}
        (size,) = self._g.write("tract_core_cast", arguments, [Expected((), dtype)])
        return _hide_formula(self._g, size, never_negative=at_most(0, dim))

    def positions(self, count: Dim) -> Value:
        """Return 0, 1, …, count - 1 as int64."""
        if isinstance(count, int):
            return self._g.constant(np.arange(count, dtype=np.int64))
        counted = Expected((count,), INT64)
        sizes = self._g.tract_core_range(0, count, 1, out=counted)  # in the engine's own dtype of sizes
        return _hide_formula(self._g, self._g.tract_core_cast(sizes, to="i64", out=counted), never_negative=True)


def _hide_formula(g: TractBuilder, value: Value, *, never_negative: bool) -> Value:
    """Return a value so that the engine cannot see the sizes that it is computed from.

    Releases from 0.23.0 on evaluate such values as integer expressions: half of 5 is 2, and a mask of positions ends in
    an undetermined symbol.
    """
    if not g.traits.follows_sizes:
        return value
    return g.abs(value) if never_negative else barrier(g, value)
