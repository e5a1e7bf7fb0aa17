"""Prefix scans along an axis: running sums, products and extremes.

Along an axis of fixed size, the span of every element is doubled log2(size) times; a dynamic axis becomes a masked
square matrix, which is reduced.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import INT64, Value
from t2n_core.op import formulas
from t2n_core.op.aten.diagonal import mask
from t2n_core.op.aten.reduction import extreme, has_extreme, log_sum_exp
from t2n_core.op.aten.shape import axis_of
from t2n_core.op.promote import as_numbers, wide_input
from t2n_core.op.registry import op

_SQUARE = 64
"""Up to this size the masked square is smaller than the doubling."""


@dataclass(frozen=True)
class Running:
    """One kind of scan: how to combine two elements, how to reduce an axis, and the neutral element."""

    combine: Callable[[Emitter, Value, Value], Value]
    reduce: Callable[[Emitter, Value, list[int]], Value]
    neutral: Callable[[np.dtype[Any]], float]


def _lowest(dtype: np.dtype[Any]) -> float:
    return -math.inf if dtype.kind == "f" else int(np.iinfo(dtype).min)


def _highest(dtype: np.dtype[Any]) -> float:
    return math.inf if dtype.kind == "f" else int(np.iinfo(dtype).max)


SUM = Running(lambda g, a, b: g.add(a, b), lambda g, x, axes: g.sum_reduce(x, axes=axes), lambda _: 0)
PRODUCT = Running(lambda g, a, b: formulas.product(g, a, b), formulas.product_of, lambda _: 1)
MAXIMUM = Running(formulas.maximum, lambda g, x, axes: extreme(g, x, axes, "max_reduce"), _lowest)
MINIMUM = Running(formulas.minimum, lambda g, x, axes: extreme(g, x, axes, "min_reduce"), _highest)


def running(g: Emitter, x: Value, axis: int, kind: Running) -> Value:
    """Return a tensor whose element i combines the elements 0 to i."""
    if x.rank == 0:
        return x
    size = x.shape[axis]
    if isinstance(size, int) and size > _SQUARE:
        return _by_doubling(g, x, axis, size, kind)
    square, keep = _square(g, x, axis)
    masked = g.select(keep, square, kind.neutral(x.dtype))
    return g.squeeze(kind.reduce(g, masked, [axis + 1]), axes=[axis + 1])


def _square(g: Emitter, x: Value, axis: int) -> tuple[Value, Value]:
    """Return element j over the axes (i, j), in place of one axis, and a mask that is true where j <= i."""
    keep = mask(g, x.shape[axis], x.shape[axis], 0, False, axis + 2)
    trailing = list(range(axis + 2, x.rank + 1))
    return g.unsqueeze(x, axes=[axis]), g.unsqueeze(keep, axes=trailing) if trailing else keep


def _by_doubling(g: Emitter, x: Value, axis: int, size: int, kind: Running) -> Value:
    span = 1
    while span < size:
        shifted = kind.combine(g, g.take(x, axis, span, size), g.take(x, axis, 0, size - span))
        x = g.concat([g.take(x, axis, 0, span), shifted], axis=axis)
        span *= 2
    return x


def _rule(key: str, kind: Running) -> None:
    @op(key)
    def rule(g: Emitter, self: Value, dim: int, dtype: Any = None) -> Value:
        return g.cast(running(g, wide_input(g, self), axis_of(self, dim), kind), g.output.dtype)


_rule("aten::cumsum", SUM)
_rule("aten::cumprod", PRODUCT)


@op("aten::cumsum", target="tract", since="0.23.9")
def cumsum(g: Emitter, self: Value, dim: int, dtype: Any = None) -> Value:
    """Use the engine's own operator."""
    x = wide_input(g, self)
    if x.rank == 0:
        return g.cast(x, g.output.dtype)
    total = g.tract_core_cumsum(x, axis=axis_of(x, dim), exclusive=False, reverse=False)
    return g.cast(total, g.output.dtype)


@op("aten::logcumsumexp")
def logcumsumexp(g: Emitter, self: Value, dim: int) -> Value:
    """log of the running sum of exp, every prefix shifted by its own maximum."""
    x = wide_input(g, self)
    if x.rank == 0:
        return g.cast(x, g.output.dtype)
    axis = axis_of(x, dim)
    square, keep = _square(g, x, axis)
    total = log_sum_exp(g, g.select(keep, square, -math.inf), [axis + 1])
    return g.cast(g.squeeze(total, axes=[axis + 1]), g.output.dtype)


def _extreme(key: str, kind: Running) -> None:
    @op(key)
    def rule(g: Emitter, self: Value, dim: int) -> tuple[Value, Value]:
        """Return running extremes, and the last index of each."""
        x = as_numbers(g, self)
        if x.rank == 0:
            return self, g.constant(np.zeros((), np.int64))
        axis = axis_of(x, dim)
        values = running(g, x, axis, kind)
        square, keep = _square(g, x, axis)
        here = g.and_(keep, has_extreme(g, square, g.unsqueeze(values, axes=[axis + 1])))
        places = g.reshape_to(g.positions(x.shape[axis]), [x.shape[axis], *[1] * (x.rank - 1 - axis)])
        last = g.max_reduce(g.select(here, places, 0), axes=[axis + 1])
        return g.cast(values, self.dtype), g.cast(g.squeeze(last, axes=[axis + 1]), INT64)


_extreme("aten::cummax", MAXIMUM)
_extreme("aten::cummin", MINIMUM)
