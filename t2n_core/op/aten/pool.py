"""Pooling over windows of fixed size, and adaptive pooling to a fixed number of places."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from t2n_core.nnef.dims import Dim, as_dim, floor_div, is_static, product
from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import Value
from t2n_core.op.aten.conv import per_axis
from t2n_core.op.aten.pad import padded
from t2n_core.op.registry import op

Sizes = int | Sequence[int]
LOWEST = float(np.finfo(np.float32).min)


class Window:
    """How a window moves over the last axes of a tensor, `ceil_mode` turned into further padding behind."""

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
        """Elements behind the padding that the last window sees; they count for nothing."""

    def _more(self, g: Emitter, axis: int, extent: Dim) -> int:
        """A last window that starts inside the input or its left padding is kept, even where it sticks out."""
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
                hint="a window over a short axis may see nothing but padding, where engines and PyTorch differ",
            )
        return min(stride - 1, field - padding - 1)

    def arguments(self, before: Sequence[int], behind: Sequence[int]) -> dict[str, list[int] | list[tuple[int, int]]]:
        """Of a pooling statement on [N, C, …]."""
        return {
            "size": [1, 1, *self.size],
            "stride": [1, 1, *self.stride],
            "dilation": [1, 1, *self.dilation],
            "padding": [(0, 0), (0, 0), *zip(before, behind, strict=True)],
        }

    def behind(self) -> list[int]:
        return [p + m for p, m in zip(self.padding, self.more, strict=True)]


# ------------------------------------------------------------------------------------------------------ the statements
def _max_pool(g: Emitter, value: Value, window: Window) -> Value:
    batched = _with_channels(g, value, window)
    out = g.max_pool(batched, **window.arguments(window.padding, window.behind()), border="ignore")
    return _as_before(g, out, value, window)


def _with_channels(g: Emitter, value: Value, window: Window) -> Value:
    """[N, C, …] with a known C, without which engines have no pooling."""
    if is_static(value.shape[-window.count - 1 : -window.count]):
        return g.lift(value, window.count + 2)
    return g.reshape_to(value, [product(value.shape[: -window.count]), 1, *value.shape[-window.count :]])


def _as_before(g: Emitter, out: Value, value: Value, window: Window) -> Value:
    """The axes in front of the windows as `value` had them."""
    if is_static(value.shape[-window.count - 1 : -window.count]):
        return g.squeeze_axes(out, range(out.rank - value.rank))
    return g.reshape_to(out, [*value.shape[: -window.count], *out.shape[2:]])


def _positions(g: Emitter, value: Value, out: Value, window: Window) -> Value | None:
    """Where each maximum came from, as index into the flattened axes; the first of equals. Static sizes only."""
    count = window.count
    if not is_static((*value.shape[-count:], *out.shape[-count:])):
        return None
    front = value.rank - count
    pairs = [(p, max(q, 0)) for p, q in zip(window.padding, window.behind(), strict=True)]
    wide = padded(g, value, {axis: pair for axis, pair in enumerate(pairs, start=front) if pair != (0, 0)}, LOWEST)
    places = [int(d) for d in out.shape[-count:]]
    extents = [int(d) for d in value.shape[-count:]]
    best: Value | None = None
    where: Value | None = None
    for offset in itertools.product(*map(range, window.size)):
        begin = [o * d for o, d in zip(offset, window.dilation, strict=True)]
        end = [b + (n - 1) * s + 1 for b, n, s in zip(begin, places, window.stride, strict=True)]
        axes = list(range(front, value.rank))
        piece = g.slice(wide, axes=axes, begin=begin, end=end, stride=window.stride)
        grids = np.meshgrid(*(
            np.arange(n) * s + b - p
            for n, s, b, p in zip(places, window.stride, begin, window.padding, strict=True)
        ), indexing="ij")  # fmt: skip
        flat = sum(grid * math.prod(extents[axis + 1 :]) for axis, grid in enumerate(grids))
        here = g.lift(g.constant(np.asarray(flat, dtype=np.int64)), value.rank)
        if best is None or where is None:
            best, where = piece, here
        else:
            better = g.gt(piece, best)
            best, where = g.select(better, piece, best), g.select(better, here, where)
    return None if where is None else g.expand(where, out.shape)


def _avg_pool(g: Emitter, value: Value, window: Window, count_include_pad: bool, divisor_override: int | None) -> Value:
    """The mean over what a window sees.

    Zeros of the padding count if asked; what lies behind them never does. Engines differ about padding inside of the
    statement unless it is ignored, so zeros that count are put there before.
    """
    if value.dtype.kind != "f":
        raise g.fail(f"the average of {value.dtype} in a window has no form in NNEF", hint="convert to floats before")
    out = _with_channels(g, value, window)
    none = [0] * window.count
    if divisor_override is not None:
        out = _zeros_around(g, out, window.padding, window.behind())
        out = g.box(out, **window.arguments(none, none), border="ignore", normalize=True)
        out = g.mul(out, math.prod(window.size) / divisor_override)
    elif count_include_pad:
        out = _zeros_around(
            g, out, window.padding, [min(p, q) for p, q in zip(window.padding, window.behind(), strict=True)]
        )
        behind = [max(m, 0) for m in window.more]
        out = g.box(out, **window.arguments(none, behind), border="ignore", normalize=True)
    else:
        arguments = window.arguments(window.padding, window.behind())
        out = g.box(out, **arguments, border="ignore", normalize=True)
    return _as_before(g, out, value, window)


def _zeros_around(g: Emitter, value: Value, before: Sequence[int], behind: Sequence[int]) -> Value:
    pairs = zip(before, behind, strict=True)
    return padded(g, value, {axis: pair for axis, pair in enumerate(pairs, start=2) if pair != (0, 0)})


# ------------------------------------------------------------------------------------------------------------ adaptive
def _slots(extent: Dim, size: int) -> list[tuple[Dim, Dim]]:
    """Where each of `size` windows begins and ends: floor(i * extent / size), ceil((i + 1) * extent / size)."""
    return [
        (floor_div(as_dim(extent * i), size), floor_div(as_dim(extent * (i + 1) + size - 1), size)) for i in range(size)
    ]


def _adaptive(g: Emitter, value: Value, sizes: Sequence[Dim | None], mean: bool) -> Value:
    """Axis by axis: windows of a pooling to fixed sizes are products of intervals."""
    first = value.rank - len(sizes)
    for axis, size in enumerate(sizes, start=first):
        extent = value.shape[axis]
        if size is None or extent is size or (isinstance(size, int) and extent == size):
            continue
        if not isinstance(size, int):
            raise g.fail("adaptive pooling to a dynamic size has no form in NNEF")
        reduce = g.mean_reduce if mean else g.max_reduce
        if size == 1:
            value = reduce(value, axes=[axis])
        elif isinstance(extent, int) and extent % size == 0:
            shape = [*value.shape[:axis], size, extent // size, *value.shape[axis + 1 :]]
            value = g.squeeze(reduce(g.reshape_to(value, shape), axes=[axis + 1]), axes=[axis + 1])
        else:
            pieces = [reduce(g.take(value, axis, b, e), axes=[axis]) for b, e in _slots(extent, size)]
            value = g.concat(pieces, axis=axis)
    return value


def _adaptive_positions(g: Emitter, value: Value, out: Value, sizes: Sequence[Dim | None]) -> Value | None:
    """Where each maximum came from, as index into the flattened axes; the first of equals. Static sizes only."""
    first = value.rank - len(sizes)
    if not is_static((*value.shape[first:], *out.shape[first:])):
        return None
    extents, places = ([int(d) for d in v.shape[first:]] for v in (value, out))
    slots = [
        [range(int(b), int(e)) for b, e in _slots(extent, size)] for extent, size in zip(extents, places, strict=True)
    ]
    seen = [
        [int(np.ravel_multi_index(at, extents)) for at in itertools.product(*window)]
        for window in itertools.product(*slots)
    ]
    widest = max(map(len, seen))
    table = np.array([[*window, *[window[-1]] * (widest - len(window))] for window in seen], dtype=np.int64)
    flat = g.reshape_to(value, [*value.shape[:first], math.prod(extents)])
    found = g.reshape_to(g.pick(flat, g.constant(table.reshape(-1)), axis=first), [*value.shape[:first], *table.shape])
    hits = g.eq(found, g.max_reduce(found, axes=[first + 1]))
    indices = g.select(hits, g.lift(g.constant(table), found.rank), int(np.iinfo(np.int64).max))
    return g.reshape_to(g.min_reduce(indices, axes=[first + 1]), out.shape)


# ---------------------------------------------------------------------------------------------------------- the rules
def _register(count: int) -> None:
    @op(f"aten::max_pool{count}d")
    def max_pool(
        g: Emitter,
        self: Value,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
    ) -> Value:
        return _max_pool(g, self, Window(g, self, count, kernel_size, stride, padding, dilation, ceil_mode))

    @op(f"aten::max_pool{count}d_with_indices")
    def max_pool_with_indices(
        g: Emitter,
        self: Value,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
    ) -> tuple[Value, Value | None]:
        window = Window(g, self, count, kernel_size, stride, padding, dilation, ceil_mode)
        out = _max_pool(g, self, window)
        return out, _positions(g, self, out, window)

    if count == 1:

        @op("aten::avg_pool1d")
        def avg_pool1d(
            g: Emitter,
            self: Value,
            kernel_size: Sizes,
            stride: Sizes | None = None,
            padding: Sizes = 0,
            ceil_mode: bool = False,
            count_include_pad: bool = True,
        ) -> Value:
            window = Window(g, self, 1, kernel_size, stride, padding, 1, ceil_mode)
            return _avg_pool(g, self, window, count_include_pad, None)

    else:

        @op(f"aten::avg_pool{count}d")
        def avg_pool(
            g: Emitter,
            self: Value,
            kernel_size: Sizes,
            stride: Sizes | None = None,
            padding: Sizes = 0,
            ceil_mode: bool = False,
            count_include_pad: bool = True,
            divisor_override: int | None = None,
        ) -> Value:
            window = Window(g, self, count, kernel_size, stride, padding, 1, ceil_mode)
            return _avg_pool(g, self, window, count_include_pad, divisor_override)

    means = [f"aten::adaptive_avg_pool{count}d"]
    if count > 1:
        means.append(f"aten::_adaptive_avg_pool{count}d")

    @op(*means)
    def adaptive_avg_pool(g: Emitter, self: Value, output_size: Sequence[Dim]) -> Value:
        return _adaptive(g, self, output_size, mean=True)

    @op(f"aten::adaptive_max_pool{count}d")
    def adaptive_max_pool(g: Emitter, self: Value, output_size: Sequence[Dim]) -> tuple[Value, Value | None]:
        out = _adaptive(g, self, output_size, mean=False)
        return out, _adaptive_positions(g, self, out, output_size)


for _count in (1, 2, 3):
    _register(_count)
