"""Optimisation barriers: operations that change no element and that the engine's rewrites do not cross.

A `trilu` whose diagonal keeps all takes 30 ns per element. From 0.23.9 on a `gather` of all elements along an axis is a
copy of the memory in blocks; before, it takes longer than a `trilu`. A stride or a slice of another axis crosses a
`gather`, and so does a rewrite of axes before its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from t2n_core.nnef.emitter import Expected
from t2n_core.nnef.graph import INT64, Value
from t2n_core.nnef.sizes.dims import Dim
from t2n_core.nnef.tract.constants import BARRIER

if TYPE_CHECKING:
    from t2n_core.nnef.tract.builder import TractBuilder


def barrier(g: TractBuilder, value: Value) -> Value:
    """Return a value after an operation that keeps all elements: no `reshape`, `tile` or formula moves across it."""
    if not g.spec.has(BARRIER):
        axis = next((axis for axis, size in enumerate(value.shape) if size != 1), 0)
        return g.pick(value, g.positions(value.shape[axis]), axis)
    return _gather(g, value, 0) if value.rank and _is_copied(g, value.shape[0]) else _triangle(g, value)


def axes_barrier(g: TractBuilder, value: Value, axes: Sequence[int]) -> Value:
    """Return a value that no rewrite of any of these axes is moved across, neither up nor down.

    Where a release keeps a `concat` of one value it is that, a copy of the memory.
    """
    if g.traits.keeps_single_concats:
        for axis in axes:
            value = g.one("concat", [value], axis=axis)
        return value
    if not all(_is_copied(g, value.shape[axis]) for axis in axes):
        return _triangle(g, value)
    for axis in axes:
        value = _gather(g, value, axis)
    return value


def _is_copied(g: TractBuilder, size: Dim) -> bool:
    """Return whether a `gather` along an axis of this size copies blocks; a `gather` of one element becomes a slice."""
    return g.traits.copies_gathers and isinstance(size, int) and size > 1


def _gather(g: TractBuilder, value: Value, axis: int) -> Value:
    indices = g.constant(np.arange(value.shape[axis], dtype=INT64))
    return g.tract_core_gather(value, indices, axis=axis, out=Expected(value.shape, value.dtype))


def _triangle(g: TractBuilder, value: Value) -> Value:
    diagonal = g.constant(np.asarray(-(1 << 30), dtype=np.int64))
    wide = g.lift(value, 2)
    result = g.one(BARRIER, wide, k=diagonal, upper=True, out=Expected(wide.shape, wide.dtype))
    return result if wide is value else g.squeeze(result, axes=list(range(wide.rank - value.rank)))
