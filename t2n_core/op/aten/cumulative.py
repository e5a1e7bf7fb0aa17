"""Running sums, products and extremes, and the indices of the extremes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import FLOAT32, FLOAT64, INT64, Value
from t2n_core.nnef.sizes.dims import at_most
from t2n_core.op.aten.reduction import has_extreme
from t2n_core.op.aten.running import BLOCK, LOG_SUM_EXP, MAXIMUM, MINIMUM, PRODUCT, SUM, Running, running
from t2n_core.op.aten.shape import axis_of
from t2n_core.op.promote import as_numbers, wide_input
from t2n_core.op.registry import op


def _rule(key: str, kind: Running) -> None:
    @op(key)
    def rule(g: Emitter, self: Value, dim: int, dtype: Any = None) -> Value:
        return g.cast(running(g, wide_input(g, self), axis_of(self, dim), kind), g.output.dtype)


_rule("aten::cumsum", SUM)
_rule("aten::cumprod", PRODUCT)


@op("aten::cumsum", target="tract", since="0.23.9")
def cumsum(g: Emitter, self: Value, dim: int, dtype: Any = None) -> Value:
    """Use the engine's own operator, along a long axis in float64, as PyTorch does."""
    x = wide_input(g, self)
    if x.rank == 0:
        return g.cast(x, g.output.dtype)
    axis = axis_of(x, dim)
    if x.dtype == FLOAT32 and not at_most(x.shape[axis], BLOCK):
        x = g.cast(x, FLOAT64)
    total = g.tract_core_cumsum(x, axis=axis, exclusive=False, reverse=False)
    return g.cast(total, g.output.dtype)


@op("aten::logcumsumexp")
def logcumsumexp(g: Emitter, self: Value, dim: int) -> Value:
    return g.cast(running(g, wide_input(g, self), axis_of(self, dim), LOG_SUM_EXP), g.output.dtype)


_LAST_INDEX = replace(MAXIMUM, neutral=lambda _: 0)
"""The maximum of indices, in a range that targets without integers can count to."""


def _extreme(key: str, kind: Running) -> None:
    @op(key)
    def rule(g: Emitter, self: Value, dim: int) -> tuple[Value, Value]:
        """Return running extremes, and the last index of each: the largest index so far that attains its extreme."""
        x = as_numbers(g, self)
        if x.rank == 0:
            return self, g.constant(np.zeros((), np.int64))
        axis = axis_of(x, dim)
        values = running(g, x, axis, kind)
        places, trailing = g.positions(x.shape[axis]), list(range(1, x.rank - axis))
        places = g.unsqueeze(places, axes=trailing) if trailing else places
        attained = g.select(has_extreme(g, x, values), g.cast(places, INT64), 0)
        return g.cast(values, self.dtype), running(g, attained, axis, _LAST_INDEX)


_extreme("aten::cummax", MAXIMUM)
_extreme("aten::cummin", MINIMUM)
