"""Pooling over windows of fixed size, and adaptive pooling to a fixed output size."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import Value
from t2n_core.nnef.sizes.dims import Dim, is_static, product, same
from t2n_core.op.aten.pad import pad_constant
from t2n_core.op.aten.pool_windows import Sizes, Window, means_in_slots, positions_in_slots, positions_of_maxima, slots
from t2n_core.op.aten.reduction import extreme
from t2n_core.op.promote import widen_float16
from t2n_core.op.registry import op


# ------------------------------------------------------------------------------------------------------ the operations
def _max_pool(g: Emitter, value: Value, window: Window) -> Value:
    batched = _with_channels(g, value, window)
    out = g.max_pool(batched, **window.arguments(window.padding, window.padding_after()), border="ignore")
    return _restore_leading(g, out, value, window)


def _with_channels(g: Emitter, value: Value, window: Window) -> Value:
    """Return `value` as [N, C, …] with a known C, which the engines' pooling needs."""
    if is_static(value.shape[-window.count - 1 : -window.count]):
        return g.lift(value, window.count + 2)
    return g.reshape_to(value, [product(value.shape[: -window.count]), 1, *value.shape[-window.count :]])


def _restore_leading(g: Emitter, out: Value, value: Value, window: Window) -> Value:
    """Return `out` with the axes before the windows as in `value`."""
    if is_static(value.shape[-window.count - 1 : -window.count]):
        return g.squeeze_axes(out, range(out.rank - value.rank))
    return g.reshape_to(out, [*value.shape[: -window.count], *out.shape[2:]])


def _avg_pool(g: Emitter, value: Value, window: Window, count_include_pad: bool, divisor_override: int | None) -> Value:
    """Write the mean over each window.

    Zeros of the padding count if requested; elements beyond the padding never do. Engines differ in how they count
    padding of the operation itself unless it is ignored, so zeros that count are added before it.
    """
    if value.dtype.kind != "f":
        raise g.fail(
            f"the average of {value.dtype} in a window cannot be expressed in NNEF", hint="convert to floats before"
        )
    out = _with_channels(g, value, window)
    none = [0] * window.count
    if divisor_override is not None:
        out = _zeros_around(g, out, window.padding, window.padding_after())
        out = g.box(out, **window.arguments(none, none), border="ignore", normalize=True)
        out = g.mul(out, math.prod(window.size) / divisor_override)
    elif count_include_pad:
        out = _zeros_around(
            g, out, window.padding, [min(p, q) for p, q in zip(window.padding, window.padding_after(), strict=True)]
        )
        behind = [max(m, 0) for m in window.more]
        out = g.box(out, **window.arguments(none, behind), border="ignore", normalize=True)
    else:
        arguments = window.arguments(window.padding, window.padding_after())
        out = g.box(out, **arguments, border="ignore", normalize=True)
    return _restore_leading(g, out, value, window)


def _zeros_around(g: Emitter, value: Value, before: Sequence[int], after: Sequence[int]) -> Value:
    pairs = zip(before, after, strict=True)
    return pad_constant(g, value, {axis: pair for axis, pair in enumerate(pairs, start=2) if pair != (0, 0)})


# ------------------------------------------------------------------------------------------------------------ adaptive
def _adaptive(g: Emitter, value: Value, sizes: Sequence[Dim | None], mean: bool) -> Value:
    """Pool axis by axis: the windows are products of intervals. All axes with one window are one reduction."""

    def reduce(value: Value, *axes: int) -> Value:
        return g.mean_reduce(value, axes=list(axes)) if mean else extreme(g, value, list(axes), "max_reduce")

    first = value.rank - len(sizes)
    global_axes = [axis for axis, size in enumerate(sizes, start=first) if size == 1 and not same(value.shape[axis], 1)]
    if global_axes:
        value = reduce(value, *global_axes)
    if mean:
        value = _equal_windows(g, value, sizes)
    for axis, size in enumerate(sizes, start=first):
        extent = value.shape[axis]
        if size is None or same(extent, size):
            continue
        if not isinstance(size, int):
            if not mean:
                raise g.fail("adaptive pooling of maxima to a dynamic size cannot be expressed in NNEF")
            value = g.cast(means_in_slots(g, widen_float16(g, value), axis, size), value.dtype)
        elif isinstance(extent, int) and extent % size == 0:
            shape = [*value.shape[:axis], size, extent // size, *value.shape[axis + 1 :]]
            value = g.squeeze(reduce(g.reshape_to(value, shape), axis + 1), axes=[axis + 1])
        else:
            pieces = [reduce(g.take(value, axis, b, e), axis) for b, e in slots(extent, size)]
            value = g.concat(pieces, axis=axis)
    return value


def _equal_windows(g: Emitter, value: Value, sizes: Sequence[Dim | None]) -> Value:
    """Return the means along the axes whose windows overlap, all of one length and equally far apart.

    Each such axis would otherwise take a slice and a mean for each window, which engines are slow to load.
    """
    steps = [_step(extent, size) for extent, size in zip(value.shape[-len(sizes) :], sizes, strict=True)]
    if not any(steps):
        return value
    kernel, stride = zip(*(step or (1, 1) for step in steps), strict=True)
    return _avg_pool(g, value, Window(g, value, len(sizes), list(kernel), list(stride), 0, 1, False), False, None)


def _step(extent: Dim, size: Dim | None) -> tuple[int, int] | None:
    """Return the length of overlapping windows and the distance of their starts, if they are equal."""
    if not isinstance(extent, int) or not isinstance(size, int) or extent % size == 0:
        return None
    begins, ends = zip(*slots(extent, size), strict=True)
    lengths = {end - begin for begin, end in zip(begins, ends, strict=True)}
    distances = {after - before for before, after in itertools.pairwise(begins)}
    return (lengths.pop(), distances.pop()) if len(lengths) == len(distances) == 1 else None


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
        return out, positions_of_maxima(g, self, out, window)

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
        return out, positions_in_slots(g, self, out, output_size)


for _count in (1, 2, 3):
    _register(_count)
