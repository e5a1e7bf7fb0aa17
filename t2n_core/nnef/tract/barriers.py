"""Statements that change no number and that no rewriting of the engine passes; nothing else writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from t2n_core.nnef.emitter import Expected
from t2n_core.nnef.graph import Value

if TYPE_CHECKING:
    from t2n_core.nnef.tract.emitter import TractEmitter

BARRIER = "tract_core_trilu"
"""The operator that no rewriting of the engine passes."""


def fence(g: TractEmitter, value: Value) -> Value:
    """Return the same numbers, passed through a `trilu` that keeps all: no reshape or tile moves through it.

    It takes 30 ns per element, so that it is written only where nothing else helps.
    """
    diagonal = g.constant(np.asarray(-(1 << 30), dtype=np.int64))
    wide = g.lift(value, 2)
    found = g.one(BARRIER, wide, k=diagonal, upper=True, out=Expected(wide.shape, wide.dtype))
    return found if wide is value else g.squeeze(found, axes=list(range(wide.rank - value.rank)))


def hide_formula(g: TractEmitter, value: Value, *, never_negative: bool) -> Value:
    """Return the same numbers in a form in which the engine cannot see the sizes that they are computed from.

    Releases from 0.23.0 on follow such numbers as integer formulas: half of 5 is 2, and a mask of positions
    ends in an undetermined symbol.
    """
    if not g.traits.follows_sizes:
        return value
    return g.abs(value) if never_negative else fence(g, value)


__all__ = ["BARRIER", "fence", "hide_formula"]
