"""Sums and means, over the axes and in the dtype in which each release is fast and exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from t2n_core.nnef.emitter import Expected
from t2n_core.nnef.graph import FLOAT32, FLOAT64, INT64, Value
from t2n_core.nnef.sizes.dims import Shape, is_static, product, same
from t2n_core.nnef.tract.builder import TractBuilder
from t2n_core.nnef.tract.forms import long_sums
from t2n_core.nnef.tract.forms.quotients import in_float64

_SHORT: Final = 64
"""The most elements of a row of which `sums_short_rows` is known."""


def sum_reduce(g: TractBuilder, input: Value, *, axes: Sequence[int], out: Expected | None = None) -> Value:
    """Write a sum; a sum of int64, which every release truncates to 32 bits, as two sums of 32 bits each in float64.

    Each of the two is exact up to 2^21 elements, and so is their sum modulo 2^64.
    """
    if input.dtype != INT64 or _fits(input, axes):
        return long_sums.write_reduction(g, "sum_reduce", input, axes, out)
    high = g.one("div", input, 1 << 32)  # rounded in either direction
    parts = high, g.sub(input, g.mul(high, 1 << 32))
    upper, lower = (g.cast(g.one("sum_reduce", g.cast(part, FLOAT64), axes=axes), INT64) for part in parts)
    return g.add(g.mul(upper, 1 << 32), lower)


def mean_reduce(g: TractBuilder, input: Value, *, axes: Sequence[int]) -> Value:
    """Write a mean, which the engine computes as a product with a reciprocal."""
    if g.node.exact:
        return in_float64(g, input, lambda wide: long_sums.write_single(g, "mean_reduce", wide, axes))
    return long_sums.write_reduction(g, "mean_reduce", input, axes)


def softmax(g: TractBuilder, x: Value, *, axes: Sequence[int]) -> Value:
    """Write a softmax; over an axis that is not the last one by its parts, which takes at most half of the time.

    The engine's operator then reads one element after the other. Sums are in float32 there too.
    """
    inside = x.shape[axes[0] + 1 :]
    if len(axes) > 1 or x.dtype != FLOAT32 or all(same(size, 1) for size in inside):
        return g.one("softmax", x, axes=axes)
    powers = g.exp(g.sub(x, g.max_reduce(x, axes=axes)))
    return g.mul(powers, g.recip(g.one("sum_reduce", powers, axes=axes)))


def _fits(value: Value, axes: Sequence[int]) -> bool:
    """Return whether no sum along these axes can exceed 32 bits: sums of booleans, and of few small integers."""
    cast = value.producer
    source = cast.arguments.get("input") if cast is not None and cast.name == "tract_core_cast" else None
    if not isinstance(source, Value) or source.dtype.kind == "f":
        return False
    if source.dtype.kind == "b":
        return True
    count, limits = product(value.shape[axis] for axis in axes), np.iinfo(source.dtype)
    return isinstance(count, int) and count * max(-int(limits.min), int(limits.max)) < 1 << 31


def sums_rows(g: TractBuilder, lead: Shape, row: Shape) -> bool:
    """Return whether a sum over one merged axis is faster than one over several axes.

    It is faster in releases that recognise the norm over one axis, and in releases that sum one axis after the other,
    unless all leading axes have one element. A norm over a row that may be long is no longer recognised.
    """
    if not g.traits.sums_axes_at_once:
        return not same(product(lead), 1)
    return g.traits.fuses_norms and not long_sums.may_be_long(row)


def mean_of_last(g: TractBuilder, value: Value) -> Value:
    """Return the mean over the last axis, next to one of size 1: over the last axis alone it is half as fast.

    Short rows of dynamic number are summed alone: a net with norms of them loads in 0.95 of the time.
    """
    last = value.rank - 1
    size = value.shape[last]
    if g.traits.sums_short_rows and isinstance(size, int) and size <= _SHORT and not is_static(value.shape):
        return g.mean_reduce(value, axes=[last])
    row = g.unsqueeze(value, axes=[last])
    return g.squeeze(g.mean_reduce(row, axes=[last, last + 1]), axes=[last])


def norm(g: TractBuilder, value: Value, axes: Sequence[int], eps: float, inverse: Value) -> Value:
    """Return `value * inverse`, or the operator that the engine would make of it, bit for bit: that loads faster.

    The engine finds no norm whose `eps` is 0, since it drops the sum with it first.
    """
    count, least = value.shape[axes[0]], float(np.float32(eps))
    is_short = len(axes) == 1 and isinstance(count, int) and not long_sums.may_be_long([count])
    if not (is_short and least > 0 and value.dtype == FLOAT32) or g.node.exact or g.in_loop:
        return g.mul(value, inverse)
    return g.tract_core_rms_norm(value, axis=axes[0], eps=least)


FORMS: dict[str, Callable[..., Value]] = {"sum_reduce": sum_reduce, "mean_reduce": mean_reduce, "softmax": softmax}
