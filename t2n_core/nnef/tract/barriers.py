"""Optimisation barriers: operations that change no element and that the engine's rewrites do not cross."""

from __future__ import annotations

import numpy as np

from t2n_core.nnef.emitter import Emitter, Expected
from t2n_core.nnef.graph import Value

BARRIER = "tract_core_trilu"
"""The operator that the engine's rewrites do not cross."""


def barrier(g: Emitter, value: Value) -> Value:
    """Return a value after a `trilu` that keeps all elements: no reshape or tile moves across it.

    It takes 30 ns per element, so it is written only where nothing else helps.
    """
    diagonal = g.constant(np.asarray(-(1 << 30), dtype=np.int64))
    wide = g.lift(value, 2)
    result = g.one(BARRIER, wide, k=diagonal, upper=True, out=Expected(wide.shape, wide.dtype))
    return result if wide is value else g.squeeze(result, axes=list(range(wide.rank - value.rank)))
