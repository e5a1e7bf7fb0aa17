"""Windows of pooling, and the indices of their maxima."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence

import numpy as np
import sympy

from t2n_core.nnef.emitter import Emitter, Expected
from t2n_core.nnef.graph import INT64, Value
from t2n_core.nnef.sizes.dims import Dim, FloorDiv, as_dim, floor_div, is_static, product
from t2n_core.op import formulas
from t2n_core.op.aten.conv import per_axis
from t2n_core.op.aten.index import gather_axis
from t2n_core.op.aten.pad import pad_constant
from t2n_core.op.aten.reduction import arg_extreme, extreme, has_extreme
from t2n_core.op.aten.running import MAXIMUM
from t2n_core.op.promote import widen_float16

Sizes = int | Sequence[int]


class Window:
    """A window that moves over the last axes of a tensor; `ceil_mode` becomes additional padding at their ends."""

    def __init__(
        self,
        g: Emitter,
        value: Value,
        count: int,
        kernel_size: Sizes,
        stride: Sizes | None,
        padding: Sizes,
        dilation: Sizes,
        ceil_mode: bool,
    ) -> None:
        self.count = count
        self.size = per_axis(kernel_size, count)
        self.stride = per_axis(stride, count) if stride not in (None, [], ()) else self.size
        self.padding = per_axis(padding, count)
        self.dilation = per_axis(dilation, count)
        extents = value.shape[-count:]
        self.more = [self._more(g, axis, extent) if ceil_mode else 0 for axis, extent in enumerate(extents)]
        """Elements after the padding that the last window covers; they are ignored."""

    def _more(self, g: Emitter, axis: int, extent: Dim) -> int:
        """Return the padding for a last window that starts inside the input or its left padding and ends beyond it."""
        size, stride, padding = self.size[axis], self.stride[axis], self.padding[axis]
        field = self.dilation[axis] * (size - 1) + 1
        if isinstance(extent, int):
            places = -(-(extent + 2 * padding - field) // stride) + 1
            if (places - 1) * stride >= extent + padding:
                places -= 1
            return max((places - 1) * stride + field - extent - 2 * padding, -padding)
        if padding and self.dilation[axis] > 1:
            raise g.fail(
                f"ceil_mode with padding {padding} and dilation {self.dilation[axis]} over an axis of dynamic size",
                hint="a window over a short axis may cover nothing but padding, where engines and PyTorch differ",
            )
        return min(stride - 1, field - padding - 1)

    def arguments(self, before: Sequence[int], after: Sequence[int]) -> dict[str, list[int] | list[tuple[int, int]]]:
        """Return the arguments of a pooling operation on [N, C, …]."""
        return {
            "size": [1, 1, *self.size],
            "stride": [1, 1, *self.stride],
            "dilation": [1, 1, *self.dilation],
            "padding": [(0, 0), (0, 0), *zip(before, after, strict=True)],
        }

    def padding_after(self) -> list[int]:
        """Return the padding at the end of each axis, including `ceil_mode`'s."""
        return [p + m for p, m in zip(self.padding, self.more, strict=True)]


def positions_of_maxima(g: Emitter, value: Value, out: Value, window: Window) -> Value:
    """Return the index of each maximum in the flattened axes; the first one among equals, and never in the padding."""
    front = value.rank - window.count
    axes = list(range(front, value.rank))
    value = widen_float16(g, value)
    pairs = [(p, max(q, 0)) for p, q in zip(window.padding, window.padding_after(), strict=True)]
    wide = _lowest_around(g, value, {axis: pair for axis, pair in zip(axes, pairs, strict=True) if pair != (0, 0)})
    places = out.shape[front:]
    has_static_shape = is_static((*value.shape[front:], *places))
    best: Value | None = None
    steps: list[Value] = []
    for offset in itertools.product(*map(range, window.size)):
        begin = [o * d for o, d in zip(offset, window.dilation, strict=True)]
        end = [as_dim(b + (n - 1) * s + 1) for b, n, s in zip(begin, places, window.stride, strict=True)]
        expected = Expected((*value.shape[:front], *places), value.dtype)
        piece = g.slice(wide, axes=axes, begin=begin, end=end, stride=window.stride, out=expected)
        if has_static_shape:
            here = [_constant_index(g, value, places, window, begin, first=best is None)]
        else:
            here = [g.constant(np.full((1,) * value.rank, b, np.int64)) for b in begin]
        if best is None:
            best, steps = piece, here
        else:
            better = g.gt(piece, best)
            best = g.select(better, piece, best)
            steps = [
                g.select(better, new, old) if new is not old else old for new, old in zip(here, steps, strict=True)
            ]
    if has_static_shape:
        return g.expand(steps[0], out.shape)
    flat: Value | None = None
    for dimension, axis in enumerate(axes):
        start = g.sub(g.mul(g.positions(out.shape[axis]), window.stride[dimension]), window.padding[dimension])
        start = g.unsqueeze(start, axes=[*range(axis), *range(axis + 1, value.rank)])
        index = g.add(steps[dimension], start)
        if window.padding[dimension]:
            index = _first_after_padding(g, index, start, window.dilation[dimension])
        flat = _digit(g, flat, index, value.shape[axis])
    assert flat is not None
    return g.expand(flat, out.shape)


def _constant_index(
    g: Emitter, value: Value, places: Sequence[Dim], window: Window, begin: Sequence[int], *, first: bool
) -> Value:
    """Return the index, in the flattened axes of known sizes, of the element at one offset in every window.

    With `first`, where that offset lies in the padding, it is the first element that is not padding.
    """
    lines = []
    for size, begins, stride, padding, dilation in zip(
        places, begin, window.stride, window.padding, window.dilation, strict=True
    ):
        line = np.arange(int(size)) * stride + begins - padding
        lines.append(np.where(line < 0, line % dilation, line) if first else line)
    extents = [int(d) for d in value.shape[-window.count :]]
    flat = sum(grid * math.prod(extents[axis + 1 :]) for axis, grid in enumerate(np.meshgrid(*lines, indexing="ij")))
    return g.lift(g.constant(np.asarray(flat, dtype=np.int64)), value.rank)


def _lowest_around(g: Emitter, value: Value, pairs: dict[int, tuple[Dim, Dim]]) -> Value:
    """Return `value` padded with the lowest finite value, which also replaces -inf in it."""
    if not pairs or value.dtype.kind != "f":
        return pad_constant(g, value, pairs, MAXIMUM.neutral(value.dtype))
    lowest = float(np.finfo(value.dtype).min)
    return pad_constant(g, g.max(value, lowest), pairs, lowest)


def _first_after_padding(g: Emitter, index: Value, start: Value, dilation: int) -> Value:
    """Return an index along an axis; in the padding, the first element of the window that is not padding."""
    if dilation == 1:
        return g.max(index, 0)
    steps = g.div(g.add(g.neg(start), dilation - 1), dilation)
    return g.select(g.lt(index, 0), g.add(start, g.mul(steps, dilation)), index)


def _digit(g: Emitter, flat_index: Value | None, index: Value, extent: Dim) -> Value:
    """Extend an index into flattened axes by one more axis, the last one."""
    return index if flat_index is None else g.add(g.mul(flat_index, g.size(extent, INT64)), index)


def slots(extent: Dim, size: int) -> list[tuple[Dim, Dim]]:
    """Return the bounds of each of `size` windows: floor(i * extent / size), ceil((i + 1) * extent / size)."""
    return [
        (floor_div(as_dim(extent * i), size), floor_div(as_dim(extent * (i + 1) + size - 1), size)) for i in range(size)
    ]


def means_in_slots(g: Emitter, value: Value, axis: int, size: Dim) -> Value:
    """Return the means over a dynamic number of windows of an axis, by picking the elements of each.

    Raises LowerError where the number of elements in a window has no known bound.
    """
    extent = value.shape[axis]
    most = _largest_slot(extent, size)
    if most is None or most > _MOST_ELEMENTS:
        raise g.fail("adaptive pooling to a dynamic size that is no fraction of the axis cannot be expressed in NNEF")
    elements, windows = g.size(extent, INT64), g.size(size, INT64)
    positions = g.positions(size)
    begin = formulas.floor_divide(g, g.mul(positions, elements), windows)
    rounded = g.sub(g.add(g.mul(g.add(positions, 1), elements), windows), 1)
    end = formulas.floor_divide(g, rounded, windows)
    parts = []
    for offset in range(most):
        at = g.add(begin, offset)
        part = gather_axis(g, value, g.min(at, g.sub(end, 1)), axis)
        parts.append(g.select(_along(g, g.lt(at, end), value.rank, axis), part, 0.0))
    return g.div(functools.reduce(g.add, parts), _along(g, g.cast(g.sub(end, begin), value.dtype), value.rank, axis))


_MOST_ELEMENTS = 32


def _along(g: Emitter, vector: Value, rank: int, axis: int) -> Value:
    return g.unsqueeze(vector, axes=[*range(axis), *range(axis + 1, rank)])


def _largest_slot(extent: Dim, size: Dim) -> int | None:
    """Return a bound on ceil(extent / size) + 1 for all sizes of 1 or more; None if no bound is known.

    If size is at least a * T + b, with b <= 0, then T is at most (size - b) / a, so at most (1 - b) / a times the size.
    """
    total = sympy.expand(extent)
    least = sympy.expand(sympy.sympify(size).replace(FloorDiv, lambda over, under: (over - under + 1) / under))
    symbols = sorted(total.free_symbols | least.free_symbols, key=str)
    if len(symbols) != 1 or not all(e.is_polynomial() and sympy.degree(e, symbols[0]) == 1 for e in (total, least)):
        return None
    (slope, start), (rise, rest) = (sympy.Poly(e, symbols[0]).all_coeffs() for e in (least, total))
    if slope <= 0 or rise <= 0:
        return None
    return int(sympy.ceiling(rise * (1 - sympy.Min(start, 0)) / slope + sympy.Max(rest, 0))) + 1


def positions_in_slots(g: Emitter, value: Value, out: Value, sizes: Sequence[Dim | None]) -> Value | None:
    """Return the index of each maximum of an adaptive pooling in the flattened axes, the first one among equals.

    Return None where the number of windows is dynamic.
    """
    front = value.rank - len(sizes)
    value = widen_float16(g, value)
    extents, places = value.shape[front:], out.shape[front:]
    if is_static((*extents, *places)):
        return _in_constant_slots(g, value, out, front)
    if not is_static(places):
        return None
    windows = [slots(extent, int(n)) for extent, n in zip(extents, places, strict=True)]
    positions = [_in_slot(g, value, list(slot)) for slot in itertools.product(*windows)]
    return g.reshape_to(g.stack(positions, axis=front), out.shape)


def _in_constant_slots(g: Emitter, value: Value, out: Value, first: int) -> Value:
    """Find the maxima with a table of the elements in each window."""
    extents, places = ([int(d) for d in v.shape[first:]] for v in (value, out))
    windows = [
        [range(int(b), int(e)) for b, e in slots(extent, size)] for extent, size in zip(extents, places, strict=True)
    ]
    seen = [
        [int(np.ravel_multi_index(at, extents)) for at in itertools.product(*window)]
        for window in itertools.product(*windows)
    ]
    widest = max(map(len, seen))
    table = np.array([[*window, *[window[-1]] * (widest - len(window))] for window in seen], dtype=np.int64)
    flat = g.reshape_to(value, [*value.shape[:first], math.prod(extents)])
    elements = g.reshape_to(
        g.pick(flat, g.constant(table.reshape(-1)), axis=first), [*value.shape[:first], *table.shape]
    )
    hits = has_extreme(g, elements, extreme(g, elements, [first + 1], "max_reduce"))
    indices = g.select(hits, g.lift(g.constant(table), elements.rank), math.prod(extents))
    return g.reshape_to(g.min_reduce(indices, axes=[first + 1]), out.shape)


def _in_slot(g: Emitter, value: Value, slot: Sequence[tuple[Dim, Dim]]) -> Value:
    """Return the index of the maximum of one window in the flattened axes, with the pooled axes removed."""
    front = value.rank - len(slot)
    piece = value
    for axis, (begin, end) in enumerate(slot, start=front):
        piece = g.take(piece, axis, begin, end)
    flat = g.reshape_to(piece, [*value.shape[:front], product(piece.shape[front:])])
    rest = arg_extreme(g, flat, front, False, "argmax_reduce")
    digits: list[Value] = []
    for axis in range(value.rank - 1, front, -1):
        size = g.size(piece.shape[axis], INT64)
        row = g.one("div", rest, size)  # of non-negative integers
        digits.append(g.sub(rest, g.mul(row, size)))
        rest = row
    index_in_slot: Value | None = None
    for (begin, _), digit, extent in zip(slot, [rest, *reversed(digits)], value.shape[front:], strict=True):
        index = digit if begin == 0 else g.add(digit, g.size(begin, INT64))
        index_in_slot = _digit(g, index_in_slot, index, extent)
    assert index_in_slot is not None
    return index_in_slot
