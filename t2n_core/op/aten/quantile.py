"""Order statistics: medians and quantiles, from the sorted axis."""

from __future__ import annotations

import math

import numpy as np

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import INT64, Value
from t2n_core.nnef.sizes.dims import Dim, as_dim, floor_div, product
from t2n_core.op import formulas
from t2n_core.op.aten.shape import axis_of
from t2n_core.op.aten.sorting import sort_by_counting
from t2n_core.op.promote import Tensorlike, tensor, wide_input
from t2n_core.op.registry import op


def _flat(g: Emitter, value: Value) -> Value:
    return g.reshape_to(value, [product(value.shape)])


def _median(g: Emitter, x: Value, axis: int, skip_nan: bool) -> tuple[Value, Value]:
    """Return the lower median of an axis (kept, of size 1) and its index; the first NaN if NaNs are not skipped."""
    size = x.shape[axis]
    values, indices = sort_by_counting(g, x, axis, False, size)  # NaNs are last
    if x.dtype.kind != "f":
        middle = _place(size)
        after = as_dim(middle + 1)
        return g.take(values, axis, middle, after), g.take(indices, axis, middle, after)
    valid = g.sum_reduce(g.cast(g.eq(x, x), INT64), axes=[axis])
    if skip_nan:
        median_index = g.max(g.div(g.sub(valid, 1), 2), 0)
    else:
        has_no_nan = g.eq(valid, g.size(size, INT64))
        median_index = g.select(has_no_nan, g.lift(g.size(_place(size), INT64), x.rank), valid)
    return (
        g.tract_core_gather_elements(values, median_index, axis=axis),
        g.tract_core_gather_elements(indices, median_index, axis=axis),
    )


def _place(size: Dim) -> Dim:
    """Return the index of the lower middle of a sorted axis."""
    return floor_div(as_dim(size - 1), 2)


def _rules(name: str, skip_nan: bool) -> None:
    @op(f"aten::{name}")
    def of_all(g: Emitter, self: Value) -> Value:
        return g.squeeze(_median(g, _flat(g, self), 0, skip_nan)[0], axes=[0])

    @op(f"aten::{name}.dim")
    def along(g: Emitter, self: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
        """Return the median and its index: the lower one of two middle elements."""
        if not self.rank:
            return self, g.constant(np.zeros((), np.int64))
        axis = axis_of(self, dim)
        values, indices = _median(g, self, axis, skip_nan)
        if keepdim:
            return values, indices
        return g.squeeze(values, axes=[axis]), g.squeeze(indices, axes=[axis])


_rules("median", False)
_rules("nanmedian", True)


def _quantile_rule(name: str, skip_nan: bool) -> None:
    @op(f"aten::{name}")
    def rule(
        g: Emitter,
        self: Value,
        q: Tensorlike,
        dim: int | None = None,
        keepdim: bool = False,
        interpolation: str = "linear",
    ) -> Value:
        """Interpolate between the two elements of the sorted axis around the position q * (count - 1)."""
        x = wide_input(g, self)
        x = _flat(g, x) if dim is None else g.lift(x, 1)
        axis = 0 if dim is None else axis_of(x, dim)
        rows = g.permute(x, [*(a for a in range(x.rank) if a != axis), axis])  # the axis comes last
        values, _ = sort_by_counting(g, rows, rows.rank - 1, False, rows.shape[-1])
        share = tensor(g, q, x.dtype)
        shares = g.reshape_to(share, [*[1] * (rows.rank - 1), product(share.shape)])
        quantiles = _interpolate(g, rows, values, shares, interpolation, skip_nan)  # [… rest, q]
        ahead = g.permute(quantiles, [quantiles.rank - 1, *range(quantiles.rank - 1)])
        return g.cast(g.reshape_to(ahead, g.output.shape), g.output.dtype)


def _interpolate(g: Emitter, x: Value, values: Value, shares: Value, interpolation: str, skip_nan: bool) -> Value:
    last = x.rank - 1
    valid = g.sum_reduce(g.cast(g.eq(x, x), x.dtype), axes=[last])
    size = g.size(x.shape[last], x.dtype)
    count = valid if skip_nan else size
    position = g.mul(shares, g.max(g.sub(g.lift(count, x.rank), 1.0), 0.0))
    position = g.expand(position, (*x.shape[:last], shares.shape[last]))
    if interpolation == "nearest":
        below = formulas.round_even(g, position)
    else:
        below = g.ceil(position) if interpolation == "higher" else g.floor(position)
    low = g.tract_core_gather_elements(values, g.cast(below, INT64), axis=last)
    if interpolation in ("linear", "midpoint"):
        high = g.tract_core_gather_elements(values, g.cast(g.ceil(position), INT64), axis=last)
        weight: Value | float = g.sub(position, below) if interpolation == "linear" else 0.5
        low = g.add(low, g.mul(g.sub(high, low), weight)) if interpolation == "linear" else _middle(g, low, high)
    if skip_nan:
        return low
    return g.select(g.lt(valid, g.lift(size, x.rank)), math.nan, low)


def _middle(g: Emitter, low: Value, high: Value) -> Value:
    return g.add(low, g.mul(g.sub(high, low), 0.5))


_quantile_rule("quantile", False)
_quantile_rule("nanquantile", True)
