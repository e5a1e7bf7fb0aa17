"""Slices, concatenations and gathers, with the sizes that the engine infers for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray

from t2n_core.nnef.emitter import Expected
from t2n_core.nnef.graph import INT64, Value
from t2n_core.nnef.sizes.dims import Dim, FloorDiv, as_dim, floor_div, has_extremes, is_static, product, same
from t2n_core.nnef.tract.builder import TractBuilder
from t2n_core.nnef.tract.sizes.arithmetic import is_quotient, is_seen_within, without_differences
from t2n_core.nnef.tract.sizes.streams import in_stream, with_a_step


def slice_(
    g: TractBuilder,
    value: Value,
    *,
    axes: Sequence[int],
    begin: Sequence[Dim],
    end: Sequence[Dim],
    stride: Sequence[int] = (),
    out: Expected | None = None,
) -> Value:
    """Write a slice; another operator is used along axes whose bounds are sizes that the engine does not accept."""
    steps = list(stride) or [1] * len(axes)
    # a constant keeps all of its slices: without the one from 0 on, some releases fail before they fold it
    may_be_part = len(axes) == 1 and steps == [1] and not g.facts.is_constant(value)
    if may_be_part and (part := _part(value, axes[0], begin[0], end[0])) is not None:
        return part
    bounds = list(zip(axes, begin, end, steps, strict=True))
    for bound in list(bounds):
        axis, first, last, step = bound
        if step == 1 and any(map(g.is_streamed, (value.shape[axis], first, last))):
            value = _slice_in_stream(g, value, axis, first, last)
            bounds.remove(bound)
        elif g.is_streamed(value.shape[axis]):
            count = as_dim(floor_div(as_dim(last - first - 1), step) + 1) if out is None else out.shape[axis]
            value = _every_nth_step(g, value, axis, first, count, step)
            bounds.remove(bound)
        elif _must_be_picked(g, value.shape[axis], first, last):
            value = _pick_range(g, value, *bound)
            bounds.remove(bound)
        elif _is_clamped(g, value.shape[axis], first, last):
            value = slice_range(g, value, *bound)
            bounds.remove(bound)
    if not bounds:
        return value
    for axis, first, last, step in bounds:
        if step != 1 and is_static((first, last)):
            value = _every_nth(g, value, axis, int(first), int(last), step)
    bounds = [bound for bound in bounds if bound[3] == 1 or not is_static(bound[1:3])]
    if not bounds:
        return value
    axes, begin, end, steps = (list(of) for of in zip(*bounds, strict=True))
    more = {"stride": steps} if any(step != 1 for step in steps) else {}
    return _with_stated_extents(g, g.one("slice", value, axes=axes, begin=begin, end=end, out=out, **more), axes)


def _part(value: Value, axis: int, begin: Dim, end: Dim) -> Value | None:
    """Return the concatenated value that a slice selects, or None."""
    concat = value.producer
    if concat is None or concat.name != "concat" or concat.arguments["axis"] != axis:
        return None
    parts: list[Value] = concat.arguments["values"]
    offset: Dim = 0
    for part in parts if len(parts) > 1 else ():
        following = as_dim(offset + part.shape[axis])
        if same(offset, begin) and same(following, end):
            return part
        offset = following
    return None


def _slice_in_stream(g: TractBuilder, value: Value, axis: int, begin: Dim, end: Dim) -> Value:
    """Return `value[begin:end]` with bounds as they are in a stream: the engine computes its delay from the begin."""
    shape = (*value.shape[:axis], as_dim(end - begin), *value.shape[axis + 1 :])
    symbol = g.streamed_symbol
    assert symbol is not None
    first, g.graph.sizes = in_stream(begin, g.graph.sizes, symbol, of_begin=True)
    last, g.graph.sizes = in_stream(end, g.graph.sizes, symbol)
    if g.is_streamed(value.shape[axis]) and g.is_streamed(first):
        raise g.fail(
            f"a stream has no last step to count from: this is a slice from {first} on",
            hint="return all steps, and let the caller of the stream take the last ones",
        )
    if _must_be_picked(g, value.shape[axis], first, last):
        return _pick_range(g, value, axis, first, last, 1)
    out = Expected(shape, value.dtype)
    if g.traits.clamps_slice_ends:  # the begin of a `slice` would be a minimum, of which it computes no delay
        length = as_dim(last - first)
        return g.tract_core_dyn_slice(value, start=first, end=last, len=length, axis=axis, out=out)
    return g.one("slice", value, axes=[axis], begin=[first], end=[last], out=out)


def _every_nth_step(g: TractBuilder, value: Value, axis: int, begin: Dim, count: Dim, step: int) -> Value:
    """Return `count` steps of a stream, every `step`-th from `begin` on, as means over windows of one step.

    Some releases take no stride of a slice in a stream, and none picks steps by their index. There is one step at
    least, since a stream is longer than what is left out before it.
    """
    if value.dtype.kind != "f":
        raise g.fail(f"every n-th step of a stream of {value.dtype} is not supported", hint="convert to floats before")
    symbol, size = g.streamed_symbol, value.shape[axis]
    assert symbol is not None
    begin, g.graph.sizes = in_stream(begin, g.graph.sizes, symbol, of_begin=True)
    longer, g.graph.sizes = in_stream(count, g.graph.sizes, symbol)
    g.graph.sizes = with_a_step(longer, g.graph.sizes, symbol)
    is_to_end = same(floor_div(as_dim(size - begin + step - 1), step), longer)
    value = g.take(value, axis, begin, size if is_to_end else as_dim(begin + (longer - 1) * step + 1))
    order = [*(other for other in range(value.rank) if other != axis), axis]
    steps = g.lift(g.permute(value, order), max(value.rank, 3))
    out, ones = Expected((*steps.shape[:-1], count), value.dtype), [1] * (steps.rank - 1)
    windows = {"size": [*ones, 1], "stride": [*ones, step], "padding": [(0, 0)] * steps.rank}
    picked = g.box(steps, **windows, border="ignore", normalize=True, out=out)
    return g.permute(
        g.squeeze_axes(picked, range(steps.rank - value.rank)), [order.index(n) for n in range(value.rank)]
    )


def concat(g: TractBuilder, values: Sequence[Value], *, axis: int) -> Value:
    """Write a concatenation, whose result has the size that later operations are written with.

    The engine sums the extents of the parts, and does not see that a minimum and the rest beyond it, or two halves, sum
    to the whole.
    """
    result = g.one("concat", values, axis=axis)
    size = result.shape[axis]
    parts = [sympy.sympify(v.shape[axis]) for v in values]
    if all(part.is_Integer for part in parts) or g.options.streaming:
        return result
    quotients = set().union(*(part.atoms(FloorDiv) for part in parts))
    if not any(map(has_extremes, parts)) and sympy.sympify(size).atoms(FloorDiv) == quotients:
        return result
    return slice_range(g, result, axis, 0, size, 1)


def with_written_sizes(g: TractBuilder, value: Value) -> Value:
    """Return a value whose axes have the sizes as they are written here.

    The engine writes some differently, such as a quotient of a minimum as a minimum of quotients.
    """
    for axis, size in enumerate(value.shape):
        if has_extremes(size) and not isinstance(size, int) and size.has(FloorDiv):
            value = slice_range(g, value, axis, 0, size, 1)
    return value


def pick(g: TractBuilder, value: Value, indices: Value, axis: int) -> Value:
    """Return `value` at indices along one axis.

    0.19 reads a matrix of indices wrongly on all axes but the first, and fails on a vector of one constant index.
    """
    shape = (*value.shape[:axis], *indices.shape, *value.shape[axis + 1 :])
    if indices.weight is not None and indices.rank and product(indices.shape) == 1:
        index = int(np.frombuffer(b"".join(indices.weight.chunks()), indices.dtype)[0])
        return g.reshape_to(g.take(value, axis, index, index + 1), shape)
    in_runs = not g.traits.streams_gathers and any(map(g.is_streamed, value.shape))
    if in_runs and indices.weight is not None and indices.rank == 1:
        return _join_runs(g, value, np.frombuffer(b"".join(indices.weight.chunks()), indices.dtype), axis)
    if indices.rank > 1 and axis > 0:
        flat = pick(g, value, g.reshape_to(indices, [product(indices.shape)]), axis)
        return g.reshape_to(flat, shape)
    return g.tract_core_gather(value, indices, axis=axis)


def _join_runs(g: TractBuilder, value: Value, places: NDArray[Any], axis: int) -> Value:
    """Return `value` at constant indices, as slices of adjacent ones."""
    runs = np.split(places, np.flatnonzero(np.diff(places) != 1) + 1)
    pieces = [g.take(value, axis, int(run[0]), int(run[-1]) + 1) for run in runs]
    return pieces[0] if len(pieces) == 1 else g.concat(pieces, axis=axis)


def _must_be_picked(g: TractBuilder, size: Dim, begin: Dim, end: Dim) -> bool:
    """Return whether `slice` does not accept these bounds, or the engine would not infer its extent."""
    if is_static((size, begin, end)):
        return False
    if not g.traits.slices_by_sizes:
        return not is_static((begin, end))
    length = as_dim(end - begin)
    between_quotients = is_quotient(begin) and is_quotient(end)
    if g.traits.is_slow_between_quotients and not g.options.streaming and between_quotients:
        return True
    return bool(g.traits.merges_quotients and without_differences(length) != length)


def _is_clamped(g: TractBuilder, size: Dim, begin: Dim, end: Dim) -> bool:
    """Return whether `slice` would clamp these bounds to the axis, and infer a wrong extent."""
    if is_static((size, begin, end)) or not g.traits.clamps_slice_ends:
        return False
    if has_extremes(begin):  # 0.21 does not see that `min(T,3)-(min(T,3)-1)` is 1
        return True
    return not (is_seen_within(begin, size) and is_seen_within(end, size))


def slice_range(g: TractBuilder, value: Value, axis: int, begin: Dim, end: Dim, step: int) -> Value:
    """Return `value[begin:end:step]` by the operator that takes the length of its result, if the release has it."""
    length = as_dim(end - begin)
    out = Expected((*value.shape[:axis], length, *value.shape[axis + 1 :]), value.dtype)
    if not g.traits.clamps_slice_ends:
        return g.one("slice", value, axes=[axis], begin=[begin], end=[end], out=out)
    piece = g.tract_core_dyn_slice(value, start=begin, end=end, len=length, axis=axis, out=out)
    piece = _with_stated_extents(g, piece, [axis])
    if step == 1:
        return piece
    if is_static((begin, end)):
        return _every_nth(g, piece, axis, 0, int(end - begin), step)
    return _pick_range(g, piece, axis, 0, length, step)


def _with_stated_extents(g: TractBuilder, value: Value, axes: Sequence[int]) -> Value:
    """Return a slice whose dynamic extents along these axes are stated by an operation that the engine removes."""
    dynamic = [axis for axis in axes if not isinstance(value.shape[axis], int)]
    if not dynamic or not g.traits.keeps_slices_symbolic or g.options.streaming:
        return value
    return g.tract_core_broadcast(value, shape=list(value.shape), out=Expected(value.shape, value.dtype))


def _every_nth(g: TractBuilder, value: Value, axis: int, begin: int, end: int, step: int) -> Value:
    """Return `value[begin:end:step]` as the first elements of rows of `step` elements.

    The engine moves a `slice` with a stride across the `reshape` that created its axis, and fails.
    """
    count = -(-(end - begin) // step)
    size = value.shape[axis]
    if not isinstance(size, int) or begin + count * step > size:
        indices = g.constant(np.arange(begin, end, step, dtype=np.int64))
        return g.pick(value, indices, axis=axis)
    before, after = value.shape[:axis], value.shape[axis + 1 :]
    rows = g.reshape_to(g.take(value, axis, begin, begin + count * step), [*before, count, step, *after])
    return g.reshape_to(g.take(rows, axis + 1, 0, 1), [*before, count, *after])


def _pick_range(g: TractBuilder, value: Value, axis: int, begin: Dim, end: Dim, step: int) -> Value:
    """Return `value[begin:end:step]` by a gather at computed indices: the engine then infers no extent itself."""
    count = as_dim(floor_div(as_dim(end - begin - 1), step) + 1)
    indices = g.positions(count)
    if step != 1:
        indices = g.mul(indices, step)
    if begin != 0:
        indices = g.add(indices, g.size(begin, INT64))
    shape = (*value.shape[:axis], count, *value.shape[axis + 1 :])
    return g.tract_core_gather(value, indices, axis=axis, out=Expected(shape, value.dtype))


FORMS: dict[str, Callable[..., Value]] = {"slice": slice_, "concat": concat}
