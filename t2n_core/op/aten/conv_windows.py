"""Convolutions with filters that the graph computes, as products: old engines need constant filters."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from t2n_core.nnef.emitter import Emitter, Expected
from t2n_core.nnef.graph import Value
from t2n_core.nnef.sizes.dims import Dim, as_dim, floor_div, is_static, product


def by_windows(
    g: Emitter,
    value: Value,
    weight: Value,
    stride: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    flip: bool = False,
) -> Value:
    """Return a convolution with a filter [out, in/groups, k…] that the graph computes, as a product per group."""
    places = [
        as_dim(floor_div(as_dim(extent - e * (k - 1) - 1), s) + 1)
        for extent, k, s, e in zip(value.shape[2:], weight.shape[2:], stride, dilation, strict=True)
    ]
    of = _windows_by_index if not is_static(weight.shape[2:]) else _windows_by_slices
    windows = of(g, value, weight.shape[2:], places, stride, dilation, flip)  # [N, C, k, places…]
    batch, channels = value.shape[:2]
    per_group = as_dim(floor_div(channels, groups) * product(weight.shape[2:]))
    # not merged with the reshape that built the windows: engines compare element counts as expressions
    windows = g.reshape(windows, shape=[batch, groups, per_group, product(places)])
    filters = g.reshape_to(weight, [1, groups, floor_div(weight.shape[0], groups), per_group])
    return g.reshape_to(g.matmul(filters, windows), [batch, weight.shape[0], *places])


def _windows_by_slices(
    g: Emitter,
    value: Value,
    sizes: Sequence[Dim],
    places: Sequence[Dim],
    stride: Sequence[int],
    dilation: Sequence[int],
    flip: bool,
) -> Value:
    """Return [N, C, k, places…]: for each element of a window of fixed size, a strided slice of the input."""
    axes = list(range(2, value.rank))
    columns = []
    for offset in itertools.product(*(range(int(k)) for k in sizes)):
        at = [int(k) - 1 - o for o, k in zip(offset, sizes, strict=True)] if flip else offset
        begin = [o * e for o, e in zip(at, dilation, strict=True)]
        end = [as_dim(b + (n - 1) * s + 1) for b, n, s in zip(begin, places, stride, strict=True)]
        piece = Expected((*value.shape[:2], *places), value.dtype)
        columns.append(g.slice(value, axes=axes, begin=begin, end=end, stride=list(stride), out=piece))
    return g.stack(columns, axis=2)


def _windows_by_index(
    g: Emitter,
    value: Value,
    sizes: Sequence[Dim],
    places: Sequence[Dim],
    stride: Sequence[int],
    dilation: Sequence[int],
    flip: bool,
) -> Value:
    """Return the same for windows of dynamic size, by index and axis by axis: first [N, C, k, n, k, n, …]."""
    count = len(sizes)
    for axis in range(count - 1, -1, -1):
        tap = g.positions(sizes[axis])
        if flip:
            tap = g.sub(g.size(as_dim(sizes[axis] - 1), tap.dtype), tap)
        rows = g.unsqueeze(g.mul(tap, dilation[axis]), axes=[1])
        columns = g.unsqueeze(g.mul(g.positions(places[axis]), stride[axis]), axes=[0])
        value = g.pick(value, g.add(rows, columns), axis=2 + axis)
    taps = [2 + 2 * axis for axis in range(count)]
    ordered = g.permute(value, [0, 1, *taps, *(tap + 1 for tap in taps)])
    return g.reshape_to(ordered, [*value.shape[:2], product(sizes), *places])
