"""Optimisation barriers: operations that change no element and that the engine's rewrites do not cross."""

from __future__ import annotations

import numpy as np

from t2n_core.nnef.emitter import Emitter, Expected
from t2n_core.nnef.graph import Value

BARRIER = "tract_core_trilu"
"""The operator that the engine's rewrites do not cross, from 0.20 on."""


def barrier(g: Emitter, value: Value) -> Value:
    """Return a value after an operation that keeps all elements: no rewrite of axes and no tile moves across it.

    That is a `trilu`, which takes 30 ns per element, so it is written only where nothing else helps; in releases
    without it, a `gather` of all elements along one axis.
    """
    if not g.spec.has(BARRIER):
        axis = next((axis for axis, size in enumerate(value.shape) if size != 1), 0)
        return g.pick(value, g.positions(value.shape[axis]), axis)
    diagonal = g.constant(np.asarray(-(1 << 30), dtype=np.int64))
    wide = g.lift(value, 2)
    result = g.one(BARRIER, wide, k=diagonal, upper=True, out=Expected(wide.shape, wide.dtype))
    return result if wide is value else g.squeeze(result, axes=list(range(wide.rank - value.rank)))
