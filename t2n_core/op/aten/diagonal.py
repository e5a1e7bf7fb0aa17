"""Diagonals of two axes, and triangular parts. For symbolic sizes the graph computes the indices."""

from __future__ import annotations

import numpy as np

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import BOOL, INT64, Value
from t2n_core.nnef.sizes.dims import Dim, as_dim, at_most, is_static, product
from t2n_core.op.aten.shape import axis_of
from t2n_core.op.registry import op


def mask(g: Emitter, rows: Dim, columns: Dim, diagonal: int, upper: bool, rank: int) -> Value:
    """Return a mask, true on and above (or below) a diagonal, with leading axes of size 1."""
    if isinstance(rows, int) and isinstance(columns, int):
        keep = np.triu(np.ones((rows, columns), bool), diagonal)
        keep = keep if upper else np.tril(np.ones((rows, columns), bool), diagonal)
        return g.constant(keep.reshape((1,) * (rank - 2) + keep.shape))
    down, across = g.unsqueeze(g.positions(rows), axes=[1]), g.unsqueeze(g.positions(columns), axes=[0])
    shifted = g.add(down, diagonal) if diagonal else down
    return g.lift(g.ge(across, shifted) if upper else g.le(across, shifted), rank)


def _triangle(g: Emitter, self: Value, diagonal: int, upper: bool) -> Value:
    return _keep_where(g, self, mask(g, self.shape[-2], self.shape[-1], diagonal, upper, self.rank))


@op("aten::triu")
def triu(g: Emitter, self: Value, diagonal: int = 0) -> Value:
    return _triangle(g, self, diagonal, True)


@op("aten::tril")
def tril(g: Emitter, self: Value, diagonal: int = 0) -> Value:
    return _triangle(g, self, diagonal, False)


@op("aten::diagonal", "aten::diagonal_copy")
def diagonal(g: Emitter, self: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """Return the diagonal of two axes, which becomes the last axis."""
    first, second = axis_of(self, dim1), axis_of(self, dim2)
    rest = [a for a in range(self.rank) if a not in (first, second)]
    x = g.permute(self, [*rest, first, second])
    flat = g.reshape_to(x, [*x.shape[:-2], product(x.shape[-2:])])
    return g.pick(flat, _places(g, x.shape[-1], g.output.shape[-1], offset), axis=len(rest))


def _places(g: Emitter, columns: Dim, length: Dim, offset: int) -> Value:
    """Return the indices of a diagonal's elements in its matrix flattened row by row."""
    start = offset if offset >= 0 else as_dim(-offset * columns)
    if is_static((columns, length)):
        return g.constant(start + np.arange(length, dtype=np.int64) * (columns + 1))
    places = g.mul(g.positions(length), g.lift(g.size(as_dim(columns + 1), INT64), 1))
    return places if start == 0 else g.add(places, g.lift(g.size(start, INT64), 1))


@op("aten::diagonal_scatter")
def diagonal_scatter(g: Emitter, self: Value, src: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """`self` with `src` written over its diagonal."""
    first, second = axis_of(self, dim1), axis_of(self, dim2)
    rows, columns = self.shape[first], self.shape[second]
    axes = [*(a for a in range(self.rank) if a not in (first, second)), first, second]
    x = g.permute(self, axes)
    if not isinstance(rows, int) or not isinstance(columns, int):
        result = _write_diagonal(g, x, g.cast(src, self.dtype), offset)
        return g.permute(result, [axes.index(a) for a in range(self.rank)])
    flat = g.reshape_to(x, [*x.shape[:-2], rows * columns])
    both = g.concat([flat, g.cast(src, self.dtype)], axis=flat.rank - 1)
    order = np.arange(rows * columns, dtype=np.int64)
    count = src.shape[-1]
    assert isinstance(count, int)
    start = offset if offset >= 0 else -offset * columns
    order[start + np.arange(count) * (columns + 1)] = rows * columns + np.arange(count)
    patchwork = g.reshape_to(g.pick(both, g.constant(order), axis=flat.rank - 1), x.shape)
    return g.permute(patchwork, [axes.index(a) for a in range(self.rank)])


def _write_diagonal(g: Emitter, x: Value, src: Value, offset: int) -> Value:
    """Return `x` with `src` written over the diagonal of its last two axes, whose sizes may be symbolic."""
    rows, columns = (g.positions(size) for size in x.shape[-2:])
    side = rows if offset >= 0 else columns  # the axis along which the diagonal begins at index 0
    last = g.lift(g.size(as_dim(src.shape[-1] - 1), INT64), 1)
    if not at_most(1, src.shape[-1]):
        src = g.concat([src, g.fill(0, (*src.shape[:-1], 1), src.dtype)], axis=src.rank - 1)
    spread = g.pick(src, g.max(g.min(side, last), 0), axis=src.rank - 1)
    spread = g.unsqueeze(spread, axes=[src.rank if offset >= 0 else src.rank - 1])
    across = g.unsqueeze(columns, axes=[0])
    down = g.unsqueeze(g.add(rows, offset) if offset else rows, axes=[1])
    return g.select(g.lift(g.eq(across, down), x.rank), spread, x)


@op("aten::diag_embed")
def diag_embed(g: Emitter, self: Value, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Value:
    """Return a matrix with the last axis on its diagonal, zero elsewhere."""
    rank = self.rank + 1
    padded = self
    if offset:  # as long as a side of the matrix
        more = g.fill(0, (*self.shape[:-1], abs(offset)), self.dtype)
        padded = g.concat([self, more], axis=self.rank - 1)
    side = padded.shape[-1]
    spread = g.unsqueeze(padded, axes=[rank - 1 if offset >= 0 else rank - 2])
    matrix = _keep_where(g, spread, _on_diagonal(g, side, offset, rank))
    first, second = dim1 % rank, dim2 % rank
    rest = iter(range(rank - 2))
    return g.permute(matrix, [rank - 2 if a == first else rank - 1 if a == second else next(rest) for a in range(rank)])


def _on_diagonal(g: Emitter, side: Dim, offset: int, rank: int) -> Value:
    """Return a mask, true on a diagonal of a square matrix, with leading axes of size 1."""
    if isinstance(side, int):
        return g.constant(np.eye(side, k=offset, dtype=bool).reshape((1,) * (rank - 2) + (side, side)))
    across = g.positions(side)
    down = g.add(across, offset) if offset else across
    return g.lift(g.eq(g.unsqueeze(across, axes=[0]), g.unsqueeze(down, axes=[1])), rank)


def _keep_where(g: Emitter, value: Value, keep: Value) -> Value:
    """`value` where `keep` is true, otherwise zero."""
    return g.and_(value, keep) if value.dtype == BOOL else g.select(keep, value, 0)
