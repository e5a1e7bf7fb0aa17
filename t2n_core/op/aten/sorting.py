"""Sorting: sort, topk, bucketize and related operators.

The rank of an element is the count of elements before it. Counting costs the square of the axis; it is exact in every
version, stable, and correct for NaN, which PyTorch sorts last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from t2n_core.nnef.emitter import Emitter, Expected
from t2n_core.nnef.graph import FLOAT64, INT64, Value
from t2n_core.nnef.sizes.dims import Dim, product
from t2n_core.op import formulas
from t2n_core.op.aten.shape import axis_of
from t2n_core.op.promote import Tensorlike, as_numbers, result_type, tensor, wide_dtype
from t2n_core.op.registry import op

COUNTED = 128
"""Elements of an axis up to which ranks are counted even where the engine can sort."""
_BELOW_INFINITY = float(np.finfo(np.float64).max)
"""A key for infinity: it is above all finite float32 values and below the key for NaN."""


def _places(g: Emitter, value: Value, axis: int, descending: bool) -> Value:
    """Return the rank of each element in the stable order."""
    plain = as_numbers(g, value)
    element, other = g.unsqueeze(plain, axes=[axis + 1]), g.unsqueeze(plain, axes=[axis])  # [… i, 1 …] and [… 1, j …]
    before = g.gt(other, element) if descending else g.lt(other, element)
    equal = g.eq(other, element)
    if plain.dtype.kind == "f":
        lost, other_lost = formulas.is_nan(g, element), formulas.is_nan(g, other)
        sooner = g.and_(other_lost, g.not_(lost)) if descending else g.and_(lost, g.not_(other_lost))
        before, equal = g.or_(before, sooner), g.or_(equal, g.and_(lost, other_lost))
    size = value.shape[axis]
    wide = [1] * (value.rank + 1)
    rows = g.reshape_to(g.positions(size), [*wide[:axis], size, *wide[axis + 1 :]])
    columns = g.reshape_to(g.positions(size), [*wide[: axis + 1], size, *wide[axis + 2 :]])
    before = g.or_(before, g.and_(equal, g.lt(columns, rows)))
    return g.squeeze(g.sum_reduce(g.cast(before, INT64), axes=[axis + 1]), axes=[axis + 1])


def sort_by_counting(g: Emitter, value: Value, axis: int, descending: bool, count: Dim) -> tuple[Value, Value]:
    """Return the first `count` elements in order along an axis, and their indices."""
    size = value.shape[axis]
    places = g.unsqueeze(_places(g, value, axis, descending), axes=[axis])  # [… 1, i …]
    wide = [1] * (value.rank + 1)
    ranks = g.reshape_to(g.positions(count), [*wide[:axis], count, *wide[axis + 1 :]])
    sources = g.reshape_to(g.positions(size), [*wide[: axis + 1], size, *wide[axis + 2 :]])
    matches = g.select(g.eq(places, ranks), sources, 0)
    indices = g.squeeze(g.max_reduce(matches, axes=[axis + 1]), axes=[axis + 1])
    return g.tract_core_gather_elements(value, indices, axis=axis), indices


def _is_counted(value: Value, axis: int, count: Dim) -> bool:
    size = value.shape[axis]
    return not isinstance(size, int) or not isinstance(count, int) or size <= COUNTED


def _by_engine(g: Emitter, value: Value, axis: int, descending: bool, count: Dim) -> tuple[Value, Value]:
    """Sort with tract's own operator, which is stable; short or dynamic axes are counted."""
    if _is_counted(value, axis, count):
        return sort_by_counting(g, value, axis, descending, count)
    shape = (*value.shape[:axis], count, *value.shape[axis + 1 :])
    keys = as_numbers(g, value)
    if keys.dtype.kind == "f":
        keys = _keys_of_floats(g, keys)
    k = g.constant(np.asarray(count, dtype=np.int64))
    outs = [Expected(shape, keys.dtype), Expected(shape, INT64)]
    values, indices = g.call("tract_core_topk", keys, k=k, axis=axis, largest=descending, outs=outs)
    if keys.dtype.kind == "f":
        return g.tract_core_gather_elements(value, indices, axis=axis), indices
    return g.cast(values, value.dtype), indices


def _keys_of_floats(g: Emitter, value: Value) -> Value:
    """Return float64 keys in the order of `value`, with infinity instead of NaN: tract's operator panics on NaN."""
    wide = g.cast(value, FLOAT64)
    finite = g.select(g.eq(wide, np.inf), _BELOW_INFINITY, wide)
    return g.select(formulas.is_nan(g, value), np.inf, finite)


Order: TypeAlias = Callable[[Emitter, Value, int, bool, Dim], tuple[Value, Value]]


def _in_rows(order: Order) -> Order:
    """Return an order that sorts the rows of a matrix, for an engine that reads the lines of other ranks wrongly."""

    def of_rows(g: Emitter, value: Value, axis: int, descending: bool, count: Dim) -> tuple[Value, Value]:
        if value.rank <= 2 or _is_counted(value, axis, count):
            return order(g, value, axis, descending, count)
        others = [at for at in range(value.rank) if at != axis]
        back = [*range(axis), value.rank - 1, *range(axis, value.rank - 1)]
        lead = [value.shape[at] for at in others]
        rows = g.reshape_to(g.permute(value, [*others, axis]), [product(lead), value.shape[axis]])
        values, indices = order(g, rows, 1, descending, count)
        return (
            g.permute(g.reshape_to(values, [*lead, count]), back),
            g.permute(g.reshape_to(indices, [*lead, count]), back),
        )

    return of_rows


def _register(order: Order, target: str | None = None, since: str | None = None) -> None:
    @op("aten::topk", implied=("sorted",), target=target, since=since)
    def topk(g: Emitter, self: Value, k: Dim, dim: int = -1, largest: bool = True) -> tuple[Value, Value]:
        return _of_rank_one(g, self, dim, largest, k)

    @op("aten::sort", "aten::sort.stable", implied=("stable",), target=target, since=since)
    def sort(g: Emitter, self: Value, dim: int = -1, descending: bool = False) -> tuple[Value, Value]:
        size = self.shape[axis_of(self, dim)] if self.rank else 1
        return _of_rank_one(g, self, dim, descending, size)

    @op("aten::argsort", "aten::argsort.stable", implied=("stable",), target=target, since=since)
    def argsort(g: Emitter, self: Value, dim: int = -1, descending: bool = False) -> Value:
        return sort(g, self, dim, descending)[1]

    @op("aten::msort", target=target, since=since)
    def msort(g: Emitter, self: Value) -> Value:
        return sort(g, self, 0)[0]

    @op("aten::kthvalue", target=target, since=since)
    def kthvalue(g: Emitter, self: Value, k: Dim, dim: int = -1, keepdim: bool = False) -> tuple[Value, Value]:
        """Return the k-th smallest element and its index, counted from 1."""
        values, indices = _of_rank_one(g, self, dim, False, k)
        shape, at = g.output.shape, max(self.rank, 1) - 1
        axis = dim % (at + 1)
        last = [g.take(g.lift(v, 1), axis, k - 1, k) for v in (values, indices)]
        return g.reshape_to(last[0], shape), g.reshape_to(last[1], shape)

    def _of_rank_one(g: Emitter, value: Value, dim: int, descending: bool, count: Dim) -> tuple[Value, Value]:
        base = g.lift(value, 1)
        values, indices = order(g, base, axis_of(base, dim), descending, count)
        if value.rank:
            return values, indices
        return g.squeeze(values, axes=[0]), g.squeeze(indices, axes=[0])


_register(sort_by_counting)
_register(_in_rows(_by_engine), "tract", "0.21.0")
_register(_by_engine, "tract", "0.21.10")


# ------------------------------------------------------------------------------------------------ counts of lower edges
def _rank_in(g: Emitter, edges: Value, values: Value, right: bool, dtype: np.dtype[Any]) -> Value:
    """Return how many edges, along the last axis, are below each value (or not above it); NaN is above all."""
    common = wide_dtype(result_type(edges, values))
    column = g.unsqueeze(g.cast(values, common), axes=[values.rank])
    edges = g.cast(edges, common)
    if edges.rank > 1:
        edges = g.unsqueeze(edges, axes=[edges.rank - 1])
    below = g.not_(g.gt(g.lift(edges, column.rank), column) if right else g.ge(g.lift(edges, column.rank), column))
    counted = g.sum_reduce(g.cast(below, INT64), axes=[values.rank])
    return g.cast(g.squeeze(counted, axes=[values.rank]), dtype)


@op("aten::bucketize", implied=("out_int32",))
def bucketize(g: Emitter, self: Tensorlike, boundaries: Value, right: bool = False) -> Value:
    """Return the index of the bucket of each element; the boundaries have rank 1."""
    return _rank_in(g, boundaries, tensor(g, self, _dtype_of(self, boundaries)), right, g.output.dtype)


@op("aten::searchsorted", implied=("out_int32",))
def searchsorted(
    g: Emitter,
    sorted_sequence: Value,
    self: Tensorlike,
    right: bool = False,
    side: str | None = None,
    sorter: Value | None = None,
) -> Value:
    """Return the index of each value in its sorted row; there is a row for each row of the values, or one for all."""
    if sorter is not None:
        rank = sorted_sequence.rank
        sorted_sequence = g.tract_core_gather_elements(sorted_sequence, g.cast(sorter, INT64), axis=rank - 1)
    values = tensor(g, self, _dtype_of(self, sorted_sequence))
    return _rank_in(g, sorted_sequence, values, right or side == "right", g.output.dtype)


def _dtype_of(value: Tensorlike, like: Value) -> np.dtype[Any]:
    return value.dtype if isinstance(value, Value) else result_type(like, value)
