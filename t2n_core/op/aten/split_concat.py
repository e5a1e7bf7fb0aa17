"""Slices and concatenations. Bounds of slices are within the axis and non-negative, as every version requires."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from t2n_core.nnef.emitter import Emitter, Expected
from t2n_core.nnef.graph import INT64, Value
from t2n_core.nnef.sizes.dims import Dim, as_dim, has_extremes, is_static, same, within
from t2n_core.op import formulas
from t2n_core.op.aten.shape import axis_of
from t2n_core.op.registry import op


def join(g: Emitter, values: Sequence[Value], axis: int) -> Value:
    """Return the concatenation of the values that are not empty."""
    full = [v for v in values if not _is_empty(v)]
    if not full:
        raise g.fail("a tensor without elements cannot be expressed in NNEF")
    return full[0] if len(full) == 1 else g.concat(full, axis=axis)


def _is_empty(value: Value) -> bool:
    return any(isinstance(d, int) and d == 0 for d in value.shape)


@op("aten::cat", "aten::concat", "aten::concatenate")
def cat(g: Emitter, tensors: Sequence[Value], dim: int = 0) -> Value:
    return join(g, [g.cast(v, g.output.dtype) for v in tensors], dim % len(g.output.shape))


@op("prims::cat")
def prims_cat(g: Emitter, tensors: Sequence[Value], dim: int) -> Value:
    return cat(g, tensors, dim)


@op("aten::stack")
def stack(g: Emitter, tensors: Sequence[Value], dim: int = 0) -> Value:
    axis = dim % len(g.output.shape)
    return join(g, [g.unsqueeze(g.cast(v, g.output.dtype), axes=[axis]) for v in tensors], axis)


def pieces(g: Emitter, value: Value, dim: int) -> list[Value]:
    """Return consecutive slices with the sizes of the captured results."""
    axis = axis_of(value, dim)
    slices: list[Value] = []
    begin: Dim = 0
    for piece in g.node.outputs:
        end = as_dim(begin + piece.shape[axis])
        slices.append(g.take(value, axis, begin, end))
        begin = end
    return slices


@op(
    "aten::split", "aten::split_with_sizes", "aten::split_copy.Tensor", "aten::split_with_sizes_copy", "aten::chunk",
    "aten::unsafe_split", "aten::unsafe_split_with_sizes", "aten::unsafe_chunk",
    implied=("split_size", "split_sizes", "chunks"),
)  # fmt: skip
def split(g: Emitter, self: Value, dim: int = 0) -> list[Value]:
    return pieces(g, self, dim)


@op("aten::tensor_split.sections", "aten::tensor_split.indices", implied=("sections", "indices"))
def tensor_split(g: Emitter, self: Value, dim: int = 0) -> list[Value]:
    return pieces(g, self, dim)


@op("aten::unbind", "aten::unbind_copy")
def unbind(g: Emitter, self: Value, dim: int = 0) -> list[Value]:
    axis = axis_of(self, dim)
    return [g.squeeze(g.take(self, axis, i, i + 1), axes=[axis]) for i in range(len(g.node.outputs))]


def true_bound(g: Emitter, bound: Dim | None, size: Dim, missing: Dim) -> Dim:
    """Return the bound of a Python slice within [0, size]. Raises LowerError where its sign is not known."""
    if bound is None:
        return missing
    try:
        return within(bound, size)
    except ValueError as wrong:
        raise g.fail(f"a bound depends on its sign: {wrong}") from wrong


def window(g: Emitter, value: Value, axis: int, start: Dim | None, length: Dim, step: Dim = 1) -> Value:
    """Return `length` elements from `start` on, every `step`-th."""
    size = value.shape[axis]
    begin = true_bound(g, start, size, 0)
    if isinstance(step, int) and step == 1:
        # not simplified: the engine subtracts the beginning again, and must find the length as it is written
        end = begin + length if has_extremes(begin) else as_dim(begin + length)
        return g.take(value, axis, begin, end)
    if isinstance(length, int) and isinstance(begin, int) and isinstance(step, int):
        if length == 1:
            return g.take(value, axis, begin, begin + 1)
        return g.slice(value, axes=[axis], begin=[begin], end=[begin + (length - 1) * step + 1], stride=[step])
    if g.is_streamed(size) and isinstance(step, int):
        end = as_dim(begin + (length - 1) * step + 1)
        out = Expected((*value.shape[:axis], length, *value.shape[axis + 1 :]), value.dtype)
        return g.slice(value, axes=[axis], begin=[begin], end=[end], stride=[step], out=out)
    # a stride over a dynamic size is refused by 0.21 and 0.22
    indices = g.mul(g.positions(length), g.size(step, INT64))
    return g.pick(value, g.add(indices, g.size(begin, INT64)), axis=axis)


def _empty_slice(g: Emitter, value: Value, axis: int) -> Value:
    """Return an empty result; if dynamic, a slice after the last element: in NNEF an end of 0 means the whole axis."""
    if not is_static(g.output.shape):
        size = value.shape[axis]
        if not isinstance(size, int) or size == 0:
            raise g.fail("a slice without elements of a dynamic axis is not supported")
        return g.one("slice", value, axes=[axis], begin=[size], end=[size], out=Expected(g.output.shape, value.dtype))
    return g.constant(np.zeros([int(d) for d in g.output.shape], g.output.dtype))


@op("aten::slice.Tensor", "aten::slice_copy.Tensor")
def slice(
    g: Emitter, self: Value, dim: int = 0, start: Dim | None = None, end: Dim | None = None, step: Dim = 1
) -> Value:
    """`self[start:end:step]` along one axis; the number of its elements is known from capture."""
    axis = axis_of(self, dim)
    return _part(g, self, axis, start, g.output.shape[axis], step)


def _part(g: Emitter, value: Value, axis: int, start: Dim | None, length: Dim, step: Dim = 1) -> Value:
    is_empty = isinstance(length, int) and length == 0
    return _empty_slice(g, value, axis) if is_empty else window(g, value, axis, start, length, step)


@op("aten::narrow", "aten::narrow_copy")
def narrow(g: Emitter, self: Value, dim: int, start: Dim, length: Dim) -> Value:
    return _part(g, self, axis_of(self, dim), start, length)


@op("aten::select.int", "aten::select_copy.int")
def select(g: Emitter, self: Value, dim: int, index: Dim) -> Value:
    axis = axis_of(self, dim)
    return g.squeeze(window(g, self, axis, index, 1), axes=[axis])


@op("aten::slice_scatter")
def slice_scatter(
    g: Emitter, self: Value, src: Value, dim: int = 0, start: Dim | None = None, end: Dim | None = None, step: Dim = 1
) -> Value:
    """`self` with `src` written over `self[start:end:step]`."""
    axis = axis_of(self, dim)
    size, source = self.shape[axis], g.cast(src, self.dtype)
    begin = true_bound(g, start, size, 0)
    if _is_empty(source):
        return self
    if isinstance(step, int) and step == 1:
        return overwrite(g, self, source, axis, begin)
    if not isinstance(step, int):
        raise g.fail("writing every n-th element is not supported where n is a dynamic size")
    order = _scattered_places(g, size, begin, source.shape[axis], step)
    return g.pick(g.concat([self, source], axis=axis), order, axis=axis)


def _scattered_places(g: Emitter, size: Dim, begin: Dim, count: Dim, step: int) -> Value:
    """Return the index that each of `size` elements is gathered from.

    It is the element's own index, or, at every `step`-th index from `begin` on, the index of one of the `count`
    appended elements.
    """
    if isinstance(size, int) and isinstance(begin, int) and isinstance(count, int):
        order = np.arange(size, dtype=np.int64)
        order[begin : begin + (count - 1) * step + 1 : step] = size + np.arange(count)
        return g.constant(order)
    positions = g.positions(size)
    distance = g.sub(positions, g.size(begin, INT64))
    number = formulas.floor_divide(g, g.max(distance, 0), g.constant(np.array([step], dtype=np.int64)))
    written = g.and_(g.eq(g.mul(number, step), distance), g.lt(number, g.size(count, INT64)))
    return g.select(written, g.add(number, g.size(size, INT64)), positions)


def overwrite(g: Emitter, value: Value, source: Value, axis: int, begin: Dim) -> Value:
    """Return `value` with `source` written over it from `begin` on."""
    size = value.shape[axis]
    end = as_dim(begin + source.shape[axis])
    parts = [source]
    if not same(begin, 0):
        parts.insert(0, g.take(value, axis, 0, begin))
    if not same(end, size):
        parts.append(g.take(value, axis, end, size))
    return parts[0] if len(parts) == 1 else g.concat(parts, axis=axis)


@op("aten::select_scatter")
def select_scatter(g: Emitter, self: Value, src: Value, dim: int, index: Dim) -> Value:
    """`self` with `src` written over `self.select(dim, index)`."""
    axis = axis_of(self, dim)
    source = g.unsqueeze(g.cast(src, self.dtype), axes=[axis])
    return overwrite(g, self, source, axis, true_bound(g, index, self.shape[axis], 0))
