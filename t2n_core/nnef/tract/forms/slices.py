"""Slices, concatenations and gathers, with the sizes that the engine infers for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import sympy

from t2n_core.nnef.emitter import Expected
from t2n_core.nnef.graph import INT64, Value
from t2n_core.nnef.sizes.dims import Dim, FloorDiv, as_dim, floor_div, has_extremes, is_static, product, symbols_of
from t2n_core.nnef.tract.builder import TractBuilder
from t2n_core.nnef.tract.sizes.arithmetic import is_quotient, is_seen_within, without_differences
from t2n_core.nnef.tract.sizes.streams import in_stream


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
    bounds = list(zip(axes, begin, end, steps, strict=True))
    for bound in list(bounds):
        axis, first, last, step = bound
        if g.options.streaming and step == 1 and not is_static((value.shape[axis], first, last)):
            value = _slice_in_stream(g, value, axis, first, last)
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


def _slice_in_stream(g: TractBuilder, value: Value, axis: int, begin: Dim, end: Dim) -> Value:
    """Return `value[begin:end]` with bounds as they are in a stream: the engine computes its delay from the begin."""
    shape = (*value.shape[:axis], as_dim(end - begin), *value.shape[axis + 1 :])
    first, g.graph.sizes = in_stream(begin, g.graph.sizes, of_begin=True)
    last, g.graph.sizes = in_stream(end, g.graph.sizes)
    of_time = symbols_of([value.shape[axis]]) & symbols_of([first])
    if of_time == set(g.graph.sizes.names):
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


def concat(g: TractBuilder, values: Sequence[Value], *, axis: int) -> Value:
    """Write a concatenation, whose result has the size that later operations are written with.

    The engine sums the extents of the parts, and does not see that a minimum and the rest beyond it, or two halves, sum
    to the whole.
    """
    whole = g.one("concat", values, axis=axis)
    size = whole.shape[axis]
    parts = [sympy.sympify(v.shape[axis]) for v in values]
    if all(part.is_Integer for part in parts) or g.options.streaming:
        return whole
    quotients = set().union(*(part.atoms(FloorDiv) for part in parts))
    if not any(map(has_extremes, parts)) and sympy.sympify(size).atoms(FloorDiv) == quotients:
        return whole
    return slice_range(g, whole, axis, 0, size, 1)


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
        place = int(np.frombuffer(b"".join(indices.weight.chunks()), indices.dtype)[0])
        return g.reshape_to(g.take(value, axis, place, place + 1), shape)
    if indices.rank > 1 and axis > 0:
        flat = pick(g, value, g.reshape_to(indices, [product(indices.shape)]), axis)
        return g.reshape_to(flat, shape)
    return g.tract_core_gather(value, indices, axis=axis)


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
