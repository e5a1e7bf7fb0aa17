"""Reshapes, permutations and repetitions. Sizes may be symbolic; the shape of a view is known from capture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import INT64, Value
from t2n_core.nnef.sizes.dims import Dim, as_dim, at_most, floor_div, maximum, product, same
from t2n_core.op.registry import op


def axis_of(value: Value, dim: int) -> int:
    """Return the axis counted from the front; a tensor of rank 0 is treated as having one axis, as in PyTorch."""
    return dim % max(value.rank, 1)


@op(
    "aten::view", "aten::reshape", "aten::_unsafe_view", "aten::_reshape_alias", "aten::view_as", "aten::reshape_as",
    "aten::view_copy", "aten::_reshape_copy", "aten::flatten", "aten::unflatten", "aten::ravel", "aten::squeeze",
    "aten::squeeze_copy", "aten::unsqueeze", "aten::unsqueeze_copy",
    implied=("size", "shape", "stride", "other", "start_dim", "end_dim", "dim", "sizes"),
)  # fmt: skip
def view(g: Emitter, self: Value, dtype: Any = None) -> Value:
    """Reshape to the captured shape; the elements keep their order."""
    if dtype is not None and self.dtype != g.output.dtype:
        raise g.fail(
            f"a view of {self.dtype} as {g.output.dtype} reinterprets its bits, which cannot be expressed in NNEF"
        )
    return g.reshape_to(self, g.output.shape)


@op("prims::reshape", "prims::split_dim", "prims::collapse_view", "prims::collapse", "prims::squeeze",
    "prims::view_of",
    implied=("shape", "dim", "outer_length", "start", "end", "dimensions"))  # fmt: skip
def prims_reshape(g: Emitter, a: Value) -> Value:
    return g.reshape_to(a, g.output.shape)


@op("prims::clone")
def prims_clone(g: Emitter, self: Value) -> Value:
    return self


def swap(g: Emitter, value: Value, first: int, second: int) -> Value:
    axes = list(range(value.rank))
    if axes:
        a, b = first % value.rank, second % value.rank
        axes[a], axes[b] = axes[b], axes[a]
    return g.permute(value, axes)


@op("aten::transpose.int", "aten::transpose_copy.int", "aten::swapdims")
def transpose(g: Emitter, self: Value, dim0: int, dim1: int) -> Value:
    return swap(g, self, dim0, dim1)


@op("aten::swapaxes")
def swapaxes(g: Emitter, self: Value, axis0: int, axis1: int) -> Value:
    return swap(g, self, axis0, axis1)


@op("aten::t", "aten::numpy_T", "aten::t_copy")
def t(g: Emitter, self: Value) -> Value:
    """Return the tensor with its axes in reverse order."""
    return g.permute(self, list(range(self.rank))[::-1])


@op("aten::mT", "aten::adjoint", "aten::matrix_H", "aten::mH")
def matrix_transpose(g: Emitter, self: Value) -> Value:
    """Return the tensor with its last two axes swapped; all tensors here are real."""
    return swap(g, self, -2, -1) if self.rank > 1 else self


@op("aten::permute", "aten::permute_copy")
def permute(g: Emitter, self: Value, dims: Sequence[int]) -> Value:
    return g.permute(self, [d % self.rank for d in dims])


@op("prims::transpose")
def prims_transpose(g: Emitter, a: Value, permutation: Sequence[int]) -> Value:
    return g.permute(a, list(permutation))


@op("aten::movedim.intlist", "aten::movedim.int", "aten::moveaxis.intlist", "aten::moveaxis.int")
def movedim(g: Emitter, self: Value, source: int | Sequence[int], destination: int | Sequence[int]) -> Value:
    """Move the axes `source` to `destination`; the others keep their order."""
    if not self.rank:
        return self
    sources, places = (
        [s % self.rank for s in ([side] if isinstance(side, int) else side)] for side in (source, destination)
    )
    rest = iter(a for a in range(self.rank) if a not in sources)
    axes = [sources[places.index(i)] if i in places else next(rest) for i in range(self.rank)]
    return g.permute(self, axes)


@op("aten::expand", "aten::expand_as", "aten::broadcast_to", "aten::expand_copy", implied=("size", "other", "implicit"))
def expand(g: Emitter, self: Value) -> Value:
    """Repeat axes of size 1."""
    return g.expand(g.lift(self, len(g.output.shape)), g.output.shape)


@op("prims::broadcast_in_dim", implied=("shape",))
def broadcast_in_dim(g: Emitter, a: Value, broadcast_dimensions: Sequence[int]) -> Value:
    """Broadcast `a`, of which axis i becomes axis broadcast_dimensions[i] of the result."""
    shape: list[Dim] = [1] * len(g.output.shape)
    for axis, result_axis in enumerate(broadcast_dimensions):
        shape[result_axis] = a.shape[axis]
    return g.expand(g.reshape_to(a, shape), g.output.shape)


@op("aten::broadcast_tensors")
def broadcast_tensors(g: Emitter, tensors: Sequence[Value]) -> list[Value]:
    return [g.expand(g.lift(v, len(e.shape)), e.shape) for v, e in zip(tensors, g.node.outputs, strict=True)]


@op("aten::repeat")
def repeat(g: Emitter, self: Value, repeats: Sequence[Dim]) -> Value:
    return repeat_axes(g, self, repeats)


@op("aten::tile")
def tile(g: Emitter, self: Value, dims: Sequence[Dim]) -> Value:
    return repeat_axes(g, self, dims)


def repeat_axes(g: Emitter, value: Value, repeats: Sequence[Dim]) -> Value:
    counts: list[Dim] = [1] * (value.rank - len(repeats)) + list(repeats)
    wide = g.lift(value, len(counts))
    if all(isinstance(r, int) and r == 1 for r in counts):
        return wide
    return g.tile(wide, repeats=counts)


@op("aten::repeat_interleave.self_int")
def repeat_interleave(
    g: Emitter, self: Value, repeats: Dim, dim: int | None = None, output_size: Dim | None = None
) -> Value:
    """Return each element `repeats` times in a row."""
    x = g.reshape_to(self, [product(self.shape)]) if dim is None else self
    axis = 0 if dim is None else axis_of(x, dim)
    wide = g.unsqueeze(x, axes=[axis + 1])
    counts: list[Dim] = [1] * wide.rank
    counts[axis + 1] = repeats
    return g.reshape_to(g.tile(wide, repeats=counts), g.output.shape)


@op("aten::flip")
def flip(g: Emitter, self: Value, dims: Sequence[int]) -> Value:
    """Reverse axes by descending indices, because a negative stride aborts the engine."""
    for axis in sorted({axis_of(self, d) for d in dims}) if self.rank else ():
        self = reverse(g, self, axis)
    return self


@op("prims::rev")
def rev(g: Emitter, a: Value, dims: Sequence[int]) -> Value:
    return flip(g, a, dims)


def reverse(g: Emitter, value: Value, axis: int) -> Value:
    size = value.shape[axis]
    if isinstance(size, int):
        if size == 1:
            return value
        backwards = g.constant(np.arange(size - 1, -1, -1, dtype=np.int64))
    else:
        backwards = g.sub(g.size(as_dim(size - 1), INT64), g.positions(size))
    return g.pick(value, backwards, axis=axis)


@op("aten::roll")
def roll(g: Emitter, self: Value, shifts: Sequence[Dim], dims: Sequence[int] = ()) -> Value:
    """Return the tensor with the last `shift` elements of an axis first; without `dims`, of the flattened tensor."""
    if not self.rank:
        return self
    x = self if dims else g.reshape_to(self, [product(self.shape)])
    for shift, dim in zip(shifts, dims or [0], strict=True):
        axis = axis_of(x, dim)
        size = x.shape[axis]
        if isinstance(size, int) and isinstance(shift, int):
            shift = shift % size if size else 0
        if shift == 0:
            continue
        if isinstance(shift, int) and (isinstance(size, int) or (abs(shift) == 1 and at_most(1, size))):
            cut = as_dim(size - shift if shift > 0 else -shift)
            x = g.concat([g.take(x, axis, cut, size), g.take(x, axis, 0, cut)], axis=axis)
        else:
            x = _roll_dynamic(g, x, axis, shift)
    return g.reshape_to(x, self.shape)


def _roll_dynamic(g: Emitter, x: Value, axis: int, shift: Dim) -> Value:
    """Roll an axis that may be shorter than the shift: element i is picked from (i - shift) modulo the size."""
    size, shifted = g.size(maximum(1, x.shape[axis]), INT64), g.size(as_dim(shift), INT64)  # engines abort on n / 0
    rest = g.sub(shifted, g.mul(g.div(shifted, size), size))  # with the sign of the shift
    places = g.sub(g.positions(x.shape[axis]), g.lift(rest, 1))
    length = g.lift(size, 1)
    places = g.select(g.lt(places, 0), g.add(places, length), places)
    places = g.select(g.ge(places, length), g.sub(places, length), places)
    return g.pick(x, places, axis=axis)


@op("aten::unfold", "aten::unfold_copy")
def unfold(g: Emitter, self: Value, dimension: int, size: int, step: int) -> Value:
    """Return windows over an axis; their elements become the last axis."""
    if self.rank == 0:
        return g.unsqueeze(self, axes=[0])
    axis = axis_of(self, dimension)
    windows = g.output.shape[axis]
    within = np.arange(size, dtype=np.int64)
    if isinstance(windows, int):
        indices = g.constant(np.arange(windows, dtype=np.int64)[:, None] * step + within)
    else:
        starts = g.unsqueeze(g.positions(windows), axes=[1])
        indices = g.add(g.mul(starts, step) if step != 1 else starts, g.constant(within[None]))
    x = g.pick(self, indices, axis)
    return g.permute(x, [*(a for a in range(x.rank) if a != axis + 1), axis + 1])


@op("aten::pixel_shuffle")
def pixel_shuffle(g: Emitter, self: Value, upscale_factor: int) -> Value:
    """[…, C r r, H, W] -> […, C, H r, W r]."""
    *lead, channels, height, width = self.shape
    r, n = upscale_factor, len(lead)
    x = g.reshape_to(self, [*lead, floor_div(channels, r * r), r, r, height, width])
    x = g.permute(x, [*range(n), n, n + 3, n + 1, n + 4, n + 2])
    return g.reshape_to(x, g.output.shape)


@op("aten::pixel_unshuffle")
def pixel_unshuffle(g: Emitter, self: Value, downscale_factor: int) -> Value:
    """[…, C, H r, W r] -> […, C r r, H, W]."""
    *lead, channels, _, _ = self.shape
    r, n = downscale_factor, len(lead)
    height, width = g.output.shape[-2:]
    if same(self.shape[-2], as_dim(height * r)) and same(self.shape[-1], as_dim(width * r)):
        x = g.reshape_to(self, [*lead, channels, height, r, width, r])
    else:  # PyTorch accepts only multiples of r, which the engine cannot know for a dynamic size
        x = _blocks(g, _blocks(g, self, n + 1, height, r), n + 3, width, r)
    x = g.permute(x, [*range(n), n, n + 2, n + 4, n + 1, n + 3])
    return g.reshape_to(x, g.output.shape)


def _blocks(g: Emitter, value: Value, axis: int, count: Dim, size: int) -> Value:
    """Split an axis into `count` blocks of `size` elements, which become the next axis."""
    starts = g.mul(g.unsqueeze(g.positions(count), axes=[1]), size)
    return g.pick(value, g.add(starts, g.constant(np.arange(size, dtype=np.int64)[None])), axis)


@op("aten::channel_shuffle", "aten::native_channel_shuffle")
def channel_shuffle(g: Emitter, self: Value, groups: int) -> Value:
    """Interleave the channels of the groups."""
    batch, channels, *rest = self.shape
    x = g.reshape_to(self, [batch, groups, floor_div(channels, groups), *rest])
    return g.reshape_to(swap(g, x, 1, 2), self.shape)
