"""Writes by index. Reductions over what is written to one element have two lowerings.

Engines from 0.23.0 reduce while they scatter. Before, every element is compared with every index, which costs the
product of their counts and is correct everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from t2n_core.nnef.emitter import Emitter, Scalar
from t2n_core.nnef.graph import BOOL, FLOAT32, INT64, Value
from t2n_core.nnef.sizes.dims import Dim, product, same
from t2n_core.op import formulas
from t2n_core.op.aten.index import Places, flatten, non_negative_index
from t2n_core.op.aten.reduction import extreme
from t2n_core.op.aten.running import SUM, running
from t2n_core.op.aten.shape import axis_of
from t2n_core.op.promote import Tensorlike, tensor
from t2n_core.op.registry import op

Reducer: TypeAlias = Callable[[Emitter, Value, int, Value, Value, str], Value]
"""(g, base, axis, index, source, reduction): `source` has the shape of `index`, or broadcasts against it."""


# ---------------------------------------------------------------------------------------------------------- reductions
def _neutral(reduce: str, dtype: np.dtype[Any]) -> Scalar:
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if dtype.kind == "f":
        return float("-inf") if reduce == "amax" else float("inf")
    limits = np.iinfo(dtype)
    return int(limits.min if reduce == "amax" else limits.max)


def _scatter_by_comparison(g: Emitter, base: Value, axis: int, index: Value, source: Value, reduce: str) -> Value:
    """Reduce by comparing every index with every position, for engines that cannot reduce while scattering."""
    size = base.shape[axis]
    wide = [1] * (base.rank + 1)
    places = g.reshape_to(g.positions(size), [*wide[:axis], size, *wide[axis + 1 :]])
    matches = g.eq(g.unsqueeze(index, axes=[axis]), places)
    neutral = _neutral(reduce, base.dtype)
    parts = g.select(matches, g.unsqueeze(source, axes=[axis]), neutral)
    if reduce in ("amax", "amin"):
        part = extreme(g, parts, [axis + 1], "max_reduce" if reduce == "amax" else "min_reduce")
    else:
        part = (g.sum_reduce if reduce == "sum" else g.tract_core_product_reduce)(parts, axes=[axis + 1])
    part = g.squeeze(part, axes=[axis + 1])
    for other, (have, want) in enumerate(zip(part.shape, base.shape, strict=True)):
        if not same(have, want):  # an index may cover only a part of the other axes
            rest = g.fill(neutral, (*part.shape[:other], want - have, *part.shape[other + 1 :]), base.dtype)
            part = g.concat([part, rest], axis=other)
    combine = {"sum": g.add, "prod": g.mul, "amax": g.max, "amin": g.min}
    return combine[reduce](base, part)


def _reducing(g: Emitter, base: Value, axis: int, index: Value, source: Value, reduce: str) -> Value:
    """Reduce by the engine's own scatter, for engines that can."""
    words = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}
    source = g.expand(source, _joint(index, source))
    index = g.expand(index, source.shape)
    return g.tract_core_scatter_elements(base, index, source, axis=axis, reduction=words[reduce])


def _joint(a: Value, b: Value) -> tuple[Dim, ...]:
    return tuple(q if isinstance(p, int) and p == 1 else p for p, q in zip(a.shape, b.shape, strict=True))


def _reduce_into(
    g: Emitter, reducer: Reducer, base: Value, axis: int, index: Value, source: Value, reduce: str, include_self: bool
) -> Value:
    """Return `base` with `source` reduced into it; without `include_self`, the overwritten elements do not count."""
    if base.dtype == BOOL:  # a sum of conditions is whether any holds
        kind = {"sum": "amax", "prod": "amin"}.get(reduce, reduce)
        numbers = g.cast(base, g.truth_dtype), axis, index, g.cast(source, g.truth_dtype)
        return g.cast(_reduce_into(g, reducer, *numbers, kind, include_self), BOOL)
    start, kind = base, reduce if reduce != "mean" else "sum"
    if not include_self:
        fresh = g.fill(_neutral(kind, base.dtype), _joint(index, source), base.dtype)
        start = g.tract_core_scatter_elements(base, g.expand(index, fresh.shape), fresh, axis=axis)
    out = reducer(g, start, axis, index, source, kind)
    if reduce != "mean":
        return out
    zeros = g.fill(0, base.shape, base.dtype)
    ones = g.fill(1, source.shape, base.dtype)
    count = reducer(g, zeros, axis, index, ones, "sum")
    count = g.add(count, 1) if include_self else g.max(count, 1)
    return g.div(out, count) if base.dtype.kind == "f" else formulas.floor_divide(g, out, count)


# ------------------------------------------------------------------------------------------------------------- scatter
def _align(g: Emitter, self: Value, index: Value, src: Tensorlike) -> tuple[Value, Value, Value]:
    """Return all three with a rank of at least 1, and `src` cut to the sizes of the index."""
    rank = max(self.rank, 1)
    base, where = g.lift(self, rank), g.lift(g.cast(index, INT64), rank)
    if not isinstance(src, Value):
        return base, where, g.expand(g.lift(tensor(g, src, self.dtype), rank), where.shape)
    source = g.lift(g.cast(src, self.dtype), rank)
    for axis, size in enumerate(where.shape):
        source = g.take(source, axis, 0, size)
    return base, where, source


def _is_empty(value: Value) -> bool:
    return any(isinstance(d, int) and d == 0 for d in value.shape)


@op("aten::scatter.src", "aten::scatter.value")
def scatter(g: Emitter, self: Value, dim: int, index: Value, src: Value | None = None, value: Tensorlike = 0) -> Value:
    """self[index[i][j]][j] = src[i][j] for dim 0."""
    if _is_empty(index):
        return self
    base, where, source = _align(g, self, index, value if src is None else src)
    out = g.tract_core_scatter_elements(base, where, source, axis=dim % base.rank)
    return g.reshape_to(out, self.shape)


@op("aten::index_copy")
def index_copy(g: Emitter, self: Value, dim: int, index: Value, source: Value) -> Value:
    base, axis, where, pieces = _along(g, self, dim, index, source)
    out = g.tract_core_scatter_elements(base, g.expand(where, pieces.shape), pieces, axis=axis)
    return g.reshape_to(out, self.shape)


def _along(g: Emitter, self: Value, dim: int, index: Value, source: Value) -> tuple[Value, int, Value, Value]:
    """Return base, axis, index and source, with a list of indices along the axis as an index that broadcasts."""
    base = g.lift(self, 1)
    axis = axis_of(base, dim)
    where = g.lift(g.cast(index, INT64), 1)
    shape = [1] * base.rank
    where = g.reshape_to(where, [*shape[:axis], where.shape[0], *shape[axis + 1 :]])
    return base, axis, where, g.lift(g.cast(source, self.dtype), base.rank)


@op("aten::index_fill")
def index_fill(g: Emitter, self: Value, dim: int, index: Value, value: Tensorlike) -> Value:
    if _is_empty(index):
        return self
    base = g.lift(self, 1)
    axis = axis_of(base, dim)
    matches = g.eq(g.unsqueeze(g.positions(base.shape[axis]), axes=[1]), g.unsqueeze(
        g.lift(non_negative_index(g, index, base.shape[axis]), 1), axes=[0]
    ))  # fmt: skip
    hits = g.squeeze(g.max_reduce(g.cast(matches, FLOAT32), axes=[1]), axes=[1])
    shape = [1] * base.rank
    mask = g.reshape_to(g.gt(hits, 0.0), [*shape[:axis], base.shape[axis], *shape[axis + 1 :]])
    return g.reshape_to(g.select(mask, tensor(g, value, self.dtype), base), self.shape)


# ----------------------------------------------------------------------------------------------------------- index_put
def _write_masked(g: Emitter, self: Value, indices: Sequence[Value | None], values: Value, accumulate: bool) -> Value:
    """x[mask] = v is where(mask, v, x), if the shape of v does not depend on how many elements the mask selects."""
    front = next(i for i, index in enumerate(indices) if index is not None)
    mask = indices[front]
    assert mask is not None
    behind = self.rank - front - mask.rank
    if sum(index is not None for index in indices) > 1:
        raise g.fail("a boolean mask combined with other indices selects a number of elements that depends on the data")
    values = g.lift(values, front + 1 + behind)
    if not (isinstance(values.shape[front], int) and values.shape[front] == 1):
        raise g.fail(
            "one value is written per true element of the mask: their number depends on the data",
            hint="torch.where(mask, values, x) with values of the shape of x",
        )
    values = g.reshape_to(values, [*values.shape[:front], *[1] * mask.rank, *values.shape[front + 1 :]])
    mask = mask if mask.dtype == BOOL else g.ne(mask, 0)
    mask = g.lift(g.reshape_to(mask, [*mask.shape, *[1] * behind]), self.rank)
    return g.select(mask, g.add(self, values) if accumulate else values, self)


def _index_put(
    g: Emitter, reducer: Reducer, self: Value, indices: Sequence[Value | None], values: Value, accumulate: bool
) -> Value:
    values = g.cast(values, self.dtype)
    if any(i is not None and i.dtype in (BOOL, np.dtype(np.uint8)) for i in indices):
        return _write_masked(g, self, indices, values, accumulate)
    places = Places(g, self, indices)
    rows, count = places.rows(g, self), product(places.index_shape)
    wide = g.lift(values, places.rank)
    order = places.result_order()
    shape = [*places.index_shape, *rows.shape[1:]]
    wide = g.expand(g.permute(wide, order), tuple(shape))
    updates = g.reshape_to(wide, [count, *rows.shape[1:]])
    where = g.reshape_to(places.flat, [count, *[1] * (rows.rank - 1)])
    if accumulate:
        return places.restore_rows(g, _reduce_into(g, reducer, rows, 0, where, updates, "sum", include_self=True))
    out = g.tract_core_scatter_elements(rows, g.expand(where, updates.shape), updates, axis=0)
    return places.restore_rows(g, out)


@op("aten::masked_scatter")
def masked_scatter(g: Emitter, self: Value, mask: Value, source: Value) -> Value:
    """Return `self` with the elements of `source` where the mask is true: the n-th true takes the n-th element."""
    shape = g.output.shape
    mask = g.expand(g.lift(mask, len(shape)), shape)
    flat = g.cast(flatten(g, mask), FLOAT32)
    counted = running(g, flat, 0, SUM)
    which = g.cast(g.max(g.sub(counted, 1.0), 0.0), INT64)
    pool = flatten(g, g.cast(source, self.dtype))
    elements = g.pick(pool, g.min(which, last_index(g, pool)), axis=0)
    return g.select(mask, g.reshape_to(elements, shape), self)


def last_index(g: Emitter, value: Value) -> Value:
    """Return the last index of a vector."""
    return g.size(value.shape[0] - 1, INT64)


# ------------------------------------------------------------------------------------ rules that reduce, both lowerings
def _register(reducer: Reducer, target: str | None = None, since: str | None = None) -> None:
    @op("aten::scatter_add", target=target, since=since)
    def scatter_add(g: Emitter, self: Value, dim: int, index: Value, src: Value) -> Value:
        return scatter_reduce(g, self, dim, index, src, "sum")

    @op("aten::scatter.reduce", "aten::scatter.value_reduce", target=target, since=since)
    def scatter_by_name(
        g: Emitter,
        self: Value,
        dim: int,
        index: Value,
        reduce: str,
        src: Value | None = None,
        value: Tensorlike = 0,
    ) -> Value:
        word = {"add": "sum", "multiply": "prod"}.get(reduce, reduce)
        return scatter_reduce(g, self, dim, index, value if src is None else src, word)

    @op("aten::scatter_reduce", target=target, since=since)
    def scatter_reduce(
        g: Emitter, self: Value, dim: int, index: Value, src: Tensorlike, reduce: str, include_self: bool = True
    ) -> Value:
        if _is_empty(index):
            return self
        base, where, source = _align(g, self, index, src)
        out = _reduce_into(g, reducer, base, dim % base.rank, where, source, reduce, include_self)
        return g.reshape_to(out, self.shape)

    @op("aten::index_add", target=target, since=since)
    def index_add(g: Emitter, self: Value, dim: int, index: Value, source: Value, alpha: Tensorlike = 1) -> Value:
        if _is_empty(index):
            return self
        base, axis, where, pieces = _along(g, self, dim, index, source)
        if alpha != 1:
            pieces = g.mul(pieces, tensor(g, alpha, self.dtype))
        return g.reshape_to(_reduce_into(g, reducer, base, axis, where, pieces, "sum", include_self=True), self.shape)

    @op("aten::index_reduce", target=target, since=since)
    def index_reduce(
        g: Emitter, self: Value, dim: int, index: Value, source: Value, reduce: str, include_self: bool = True
    ) -> Value:
        base, axis, where, pieces = _along(g, self, dim, index, source)
        out = _reduce_into(g, reducer, base, axis, where, pieces, reduce, include_self)
        return g.reshape_to(out, self.shape)

    @op("aten::index_put", "aten::_unsafe_index_put", target=target, since=since)
    def index_put(
        g: Emitter, self: Value, indices: Sequence[Value | None], values: Value, accumulate: bool = False
    ) -> Value:
        return _index_put(g, reducer, self, indices, values, accumulate)

    @op("aten::put", target=target, since=since)
    def put(g: Emitter, self: Value, index: Value, source: Value, accumulate: bool = False) -> Value:
        """Write `source`, or add it, at indices into the flattened tensor."""
        if _is_empty(index):
            return self
        flat = flatten(g, self)
        where = non_negative_index(g, flatten(g, index), flat.shape[0])
        pieces = g.cast(flatten(g, source), self.dtype)
        if accumulate:
            out = _reduce_into(g, reducer, flat, 0, where, pieces, "sum", include_self=True)
        else:
            out = g.tract_core_scatter_elements(flat, where, pieces, axis=0)
        return g.reshape_to(out, self.shape)


_register(_scatter_by_comparison)
_register(_reducing, "tract", "0.23.0")
