"""Running sums, products and extremes along an axis: element i combines the elements 0 to i.

* A short axis becomes a masked square, which is reduced.
* Along a longer axis of fixed size, the span of every element is doubled log2(size) times.
* A dynamic axis is cut into blocks. In all blocks at once, the spans are doubled up to the block's size; a loop over
  the blocks then combines their last elements. The engine takes 1 µs for a step of a loop, and up to 100 times that in
  releases that check the sizes in each step.
* A loop over the elements themselves runs along the axis of a stream, where it carries its state from piece to piece;
  where many elements share a step, so that blocks would take up to six times as long; and where some releases cannot
  reshape the blocks: the size is a maximum or a minimum, or another axis may be empty.

PyTorch adds and multiplies float32 in float64, and rounds each result once. So do all but the square: in float32 a loop
would drift, after 240,000 steps of 0.1 by 1 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import FLOAT32, Value
from t2n_core.nnef.loop_emitter import LoopEmitter
from t2n_core.nnef.sizes.dims import as_dim, at_most, floor_div, has_extremes
from t2n_core.op import formulas
from t2n_core.op.aten.diagonal import mask
from t2n_core.op.aten.reduction import extreme, log_sum_exp

Values: TypeAlias = list[Value]
BLOCK = 64
"""Elements of a block. Up to this size the masked square is smaller than the doubling."""
_NARROW = 32
"""Elements that share a step, up to which blocks are faster than steps, or not much slower."""


@dataclass(frozen=True)
class Running:
    """One way to combine elements: of two, of an axis, the neutral element, and whether the results are rounded."""

    combine: Callable[[Emitter, Value, Value], Value]
    reduce: Callable[[Emitter, Value, list[int]], Value]
    neutral: Callable[[np.dtype[Any]], float]
    rounds: bool = True


def _lowest(dtype: np.dtype[Any]) -> float:
    return -math.inf if dtype.kind == "f" else int(np.iinfo(dtype).min)


def _highest(dtype: np.dtype[Any]) -> float:
    return math.inf if dtype.kind == "f" else int(np.iinfo(dtype).max)


SUM = Running(lambda g, a, b: g.add(a, b), lambda g, x, axes: g.sum_reduce(x, axes=axes), lambda _: 0)
PRODUCT = Running(lambda g, a, b: formulas.product(g, a, b), formulas.product_of, lambda _: 1)
LOG_SUM_EXP = Running(formulas.log_of_sum, log_sum_exp, _lowest)
MAXIMUM = Running(formulas.nan_maximum, lambda g, x, axes: extreme(g, x, axes, "max_reduce"), _lowest, rounds=False)
MINIMUM = Running(formulas.nan_minimum, lambda g, x, axes: extreme(g, x, axes, "min_reduce"), _highest, rounds=False)


def running(g: Emitter, x: Value, axis: int, kind: Running) -> Value:
    """Return a tensor whose element i combines the elements 0 to i along an axis."""
    if x.rank == 0:
        return x
    size = x.shape[axis]
    if at_most(size, BLOCK) and (isinstance(size, int) or not g.options.streaming):
        return _by_square(g, x, axis, kind)
    wide = g.cast(x, g.widest) if kind.rounds and x.dtype == FLOAT32 else x
    if isinstance(size, int):
        return g.cast(_by_doubling(g, wide, axis, size, kind), x.dtype)
    assert isinstance(g, LoopEmitter)  # other targets have no dynamic axes
    first = g.permute(wide, [axis, *range(axis), *range(axis + 1, x.rank)])
    result = _by_blocks(g, first, kind) if _has_blocks(g, first) else _by_steps(g, first, kind, exclusive=False)
    return g.permute(g.cast(result, x.dtype), [*range(1, axis + 1), 0, *range(axis + 1, x.rank)])


def _has_blocks(g: Emitter, x: Value) -> bool:
    """Return whether axis 0 is cut into blocks."""
    size, *rest = x.shape
    is_narrow = math.prod(extent for extent in rest if isinstance(extent, int)) <= _NARROW
    may_be_empty = not all(at_most(1, extent) for extent in rest)
    return is_narrow and not (may_be_empty or has_extremes(size) or g.options.streaming)


def _by_square(g: Emitter, x: Value, axis: int, kind: Running) -> Value:
    """Reduce element j over the axes (i, j) instead of one axis, with the neutral element where j > i."""
    keep = mask(g, x.shape[axis], x.shape[axis], 0, False, axis + 2)
    trailing = list(range(axis + 2, x.rank + 1))
    keep = g.unsqueeze(keep, axes=trailing) if trailing else keep
    masked = g.select(keep, g.unsqueeze(x, axes=[axis]), kind.neutral(x.dtype))
    return g.squeeze(kind.reduce(g, masked, [axis + 1]), axes=[axis + 1])


def _by_doubling(g: Emitter, x: Value, axis: int, size: int, kind: Running) -> Value:
    span = 1
    while span < size:
        shifted = kind.combine(g, g.take(x, axis, span, size), g.take(x, axis, 0, size - span))
        x = g.concat([g.take(x, axis, 0, span), shifted], axis=axis)
        span *= 2
    return x


def _by_blocks(g: LoopEmitter, x: Value, kind: Running) -> Value:
    """Combine along axis 0, of which the last block is filled up with neutral elements.

    There is a block even without elements, since some releases fail on a `reshape` of none.
    """
    size, rest = x.shape[0], x.shape[1:]
    count = as_dim(floor_div(size, BLOCK) + 1)
    padded_size = as_dim(count * BLOCK)
    filled = g.concat([x, g.fill(kind.neutral(x.dtype), (BLOCK, *rest), x.dtype)], axis=0)
    blocks = g.reshape_to(g.take(filled, 0, 0, padded_size), [count, BLOCK, *rest])
    blocks = _by_doubling(g, blocks, 1, BLOCK, kind)
    before = _by_steps(g, g.take(blocks, 1, BLOCK - 1, BLOCK), kind, exclusive=True)
    return g.take(g.reshape_to(kind.combine(g, blocks, before), [padded_size, *rest]), 0, 0, size)


def _by_steps(g: LoopEmitter, x: Value, kind: Running, *, exclusive: bool) -> Value:
    """Combine along axis 0 in a loop; `exclusive` leaves out element i of the result i."""

    def step(
        b: LoopEmitter, scanned: list[Value], states: list[Value], _: list[Value]
    ) -> tuple[list[Value], list[Value]]:
        total = kind.combine(b, states[0], scanned[0])
        return [total], [states[0] if exclusive else total]

    first = g.fill(kind.neutral(x.dtype), (1, *x.shape[1:]), x.dtype)
    _, (rows,) = g.loop(step, [x], [first])
    return rows
