"""Reads by index: embedding, gather, advanced indexing. The indices written to the graph are non-negative int64."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from t2n_core.nnef import shapes
from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import BOOL, INT64, Value
from t2n_core.nnef.sizes.dims import Dim, Shape, product
from t2n_core.op.aten.reduction import extreme
from t2n_core.op.aten.shape import axis_of
from t2n_core.op.known_elements import is_never_negative
from t2n_core.op.registry import op
from t2n_core.op.weights import constant_values
from t2n_core.torch_graph.graph.ir import TorchOp
from t2n_core.torch_graph.simplify.positions import counted_axes


def non_negative_index(g: Emitter, index: Value, size: Dim) -> Value:
    """Return the index with negative elements counted from the end, as advanced indexing does."""
    constant = constant_values(index)
    if constant is not None and isinstance(size, int):
        return g.constant(np.where(constant < 0, constant + size, constant).astype(np.int64))
    plain = g.cast(index, INT64)
    g.state_index(plain, size)
    if constant is None and is_never_negative(plain):
        return plain
    return g.select(g.lt(plain, 0), g.add(plain, g.size(size, INT64)), plain)


def gather_axis(g: Emitter, value: Value, index: Value, axis: int) -> Value:
    """Return `value` with its axis replaced by the index's axes.

    Old engines abort on an index that is not a vector, and on a constant index of a single element.
    """
    constant = constant_values(index)
    if constant is not None and constant.size == 1 and index.rank <= 1:
        at = int(constant.item())
        slice_ = g.take(value, axis, at, at + 1)
        return slice_ if index.rank else g.squeeze(slice_, axes=[axis])
    if axis == 0 or index.rank == 1:
        return g.pick(value, index, axis=axis)
    picked = g.pick(value, flatten(g, index), axis=axis)
    return g.reshape_to(picked, [*value.shape[:axis], *index.shape, *value.shape[axis + 1 :]])


@op("aten::embedding", implied=("padding_idx", "scale_grad_by_freq", "sparse"))
def embedding(g: Emitter, weight: Value, indices: Value) -> Value:
    return g.pick(weight, g.cast(indices, INT64), axis=0)


@op("aten::index_select")
def index_select(g: Emitter, self: Value, dim: int, index: Value) -> Value:
    """Return slices along one axis; an index of rank 0 means one of a single element."""
    if not self.rank:
        return self
    return gather_axis(
        g, self, g.lift(non_negative_index(g, index, self.shape[axis_of(self, dim)]), 1), axis_of(self, dim)
    )


@op("aten::gather", implied=("sparse_grad",))
def gather(g: Emitter, self: Value, dim: int, index: Value) -> Value:
    """out[i][j] = self[index[i][j]][j] for dim 0."""
    rank = max(self.rank, index.rank, 1)
    elements = g.tract_core_gather_elements(g.lift(self, rank), g.lift(g.cast(index, INT64), rank), axis=dim % rank)
    return g.reshape_to(elements, g.output.shape)


@op("aten::take_along_dim")
def take_along_dim(g: Emitter, self: Value, indices: Value, dim: int | None = None) -> Value:
    """Gather along an axis, both tensors broadcast along the others; negative indices count from the end."""
    if dim is None:
        self, indices, dim = flatten(g, self), flatten(g, indices), 0
    axis = axis_of(self, dim)
    rest = shapes.broadcast(*((*v.shape[:axis], 1, *v.shape[axis + 1 :]) for v in (self, indices)))
    source = g.expand(self, (*rest[:axis], self.shape[axis], *rest[axis + 1 :]))
    where = g.expand(indices, (*rest[:axis], indices.shape[axis], *rest[axis + 1 :]))
    return g.tract_core_gather_elements(source, non_negative_index(g, where, self.shape[axis]), axis=axis)


def flatten(g: Emitter, value: Value) -> Value:
    return g.reshape_to(value, [product(value.shape)])


@op("aten::take")
def take(g: Emitter, self: Value, index: Value) -> Value:
    """Return the elements at indices into the flattened tensor."""
    flat = flatten(g, self)
    return g.pick(flat, non_negative_index(g, index, flat.shape[0]), axis=0)


# --------------------------------------------------------------------------------------------------- advanced indexing
class Places:
    """The plan of `x[:, i, :, j]`: the indexed axes, one index into them all, and where the result has its axes."""

    def __init__(self, g: Emitter, self_: Value, indices: Sequence[Value | None]) -> None:
        self.axes = [axis for axis, index in enumerate(indices) if index is not None]
        present = [index for index in indices if index is not None]
        if any(index.dtype == BOOL or index.dtype == np.uint8 for index in present):
            raise g.fail(
                "a boolean mask picks a number of elements that depends on the data",
                hint="torch.where(mask, a, b) keeps the shape",
            )
        rank = max(index.rank for index in present)
        present = [g.lift(index, rank) for index in present]
        self.index_shape: Shape = shapes.broadcast(*(index.shape for index in present))
        self.sizes = [self_.shape[axis] for axis in self.axes]
        self.others = [axis for axis in range(self_.rank) if axis not in self.axes]
        self.front = _front(self.axes)
        flat: Value | None = None
        for index, size in zip(present, self.sizes, strict=True):
            position = non_negative_index(g, index, size)
            flat = position if flat is None else g.add(g.mul(flat, g.size(size, INT64)), position)
        assert flat is not None
        self.flat = g.expand(flat, self.index_shape)
        """Index into the indexed axes flattened to one."""

    def rows(self, g: Emitter, value: Value) -> Value:
        """`value` as [indexed, others…]."""
        moved = g.permute(value, [*self.axes, *self.others])
        return g.reshape_to(moved, [product(self.sizes), *moved.shape[len(self.axes) :]])

    def restore_rows(self, g: Emitter, rows: Value) -> Value:
        """Return the inverse of `rows`."""
        wide = g.reshape_to(rows, [*self.sizes, *rows.shape[1:]])
        order = [*self.axes, *self.others]
        return g.permute(wide, [order.index(axis) for axis in range(len(order))])

    def result_order(self) -> list[int]:
        """Return the positions of [index…, others…] in the result, [others before, index…, others after]."""
        count = len(self.index_shape)
        return [*range(self.front, self.front + count), *range(self.front), *range(self.front + count, self.rank)]

    @property
    def rank(self) -> int:
        return len(self.index_shape) + len(self.others)


def _front(axes: Sequence[int]) -> int:
    """Return the first axis of the index in the result: the first indexed axis if those are adjacent, otherwise 0."""
    return axes[0] if list(axes) == list(range(axes[0], axes[-1] + 1)) else 0


@op("aten::index.Tensor", "aten::_unsafe_index.Tensor")
def index(g: Emitter, self: Value, indices: Sequence[Value | None], node: TorchOp) -> Value:
    index_tensors = [i for i in indices if i is not None]
    variables = [v for v in node.arguments["indices"] if v is not None]
    sizes = [size for size, i in zip(self.shape, indices, strict=False) if i is not None]
    if (counted := counted_axes(variables, sizes)) is not None:
        axes = [axis for axis, i in enumerate(indices) if i is not None]
        return _all_elements(g, self, axes, counted, max(i.rank for i in index_tensors))
    if len(index_tensors) == 1 and index_tensors[0].dtype.kind == "i":
        axis = list(indices).index(index_tensors[0])
        return gather_axis(g, self, non_negative_index(g, index_tensors[0], self.shape[axis]), axis)
    places = Places(g, self, indices)
    result = gather_axis(g, places.rows(g, self), places.flat, 0)  # [index…, others…]
    order = places.result_order()
    return g.permute(result, [order.index(axis) for axis in range(len(order))])


def _all_elements(g: Emitter, value: Value, axes: Sequence[int], counted: Sequence[int | None], rank: int) -> Value:
    """Return `x[i, j]` for indices of `axes` that count positions, each along its own axis of the `rank` of the index.

    `counted` are those axes, counted from the end; None for the index 0 of an axis of one element.
    """
    front, dropped = _front(axes), [axis for axis, index_axis in zip(axes, counted, strict=True) if index_axis is None]
    by_place = {
        rank + index_axis: axis for index_axis, axis in zip(counted, axes, strict=True) if index_axis is not None
    }
    others = [axis for axis in range(value.rank) if axis not in axes]
    order = [*others[:front], *dropped, *(by_place[position] for position in sorted(by_place)), *others[front:]]
    moved = g.squeeze_axes(g.permute(value, order), range(front, front + len(dropped)))
    lone = [front + position for position in range(rank) if position not in by_place]
    return g.unsqueeze(moved, axes=lone) if lone else moved


@op("aten::one_hot")
def one_hot(g: Emitter, self: Value, num_classes: int = -1) -> Value:
    """1 at the index of the class, 0 elsewhere."""
    count = g.output.shape[-1]
    return g.cast(g.eq(g.unsqueeze(self, axes=[self.rank]), g.lift(g.positions(count), self.rank + 1)), INT64)


# ------------------------------------------------------------------------------------------------------ embedding_bag
_IMPLIED_BY_BAGS = ("scale_grad_by_freq", "sparse", "include_last_offset")


@op("aten::embedding_bag.padding_idx", implied=_IMPLIED_BY_BAGS)
def embedding_bag_padding_idx(
    g: Emitter,
    weight: Value,
    indices: Value,
    offsets: Value,
    mode: int = 0,
    per_sample_weights: Value | None = None,
    padding_idx: int | None = None,
) -> tuple[Value, None, None, None]:
    """Resolve a padding_idx counted from the end; for `embedding_bag`, -1 means that there is none."""
    if padding_idx is not None and padding_idx < 0:
        if not isinstance(weight.shape[0], int):
            raise g.fail(
                "a padding_idx counted from the end of a table of dynamic size is not supported yet",
                hint="count it from the start",
            )
        padding_idx += weight.shape[0]
    return embedding_bag(g, weight, indices, offsets, mode, per_sample_weights, padding_idx)


@op("aten::embedding_bag", "aten::_embedding_bag", implied=_IMPLIED_BY_BAGS)
def embedding_bag(
    g: Emitter,
    weight: Value,
    indices: Value,
    offsets: Value,
    mode: int = 0,
    per_sample_weights: Value | None = None,
    padding_idx: int | None = None,
) -> tuple[Value, None, None, None]:
    """Sum (0), mean (1) or maximum (2) of the rows of each bag; bag i begins at offsets[i]. An empty bag is zero."""
    count, size = g.output.shape[0], indices.shape[0]
    rows = g.pick(weight, g.cast(indices, INT64), axis=0)
    if per_sample_weights is not None:
        rows = g.mul(rows, g.unsqueeze(per_sample_weights, axes=[1]))
    starts = g.take(g.cast(offsets, INT64), 0, 0, count)
    at = g.unsqueeze(g.positions(size), axes=[0])
    inside = g.ge(at, g.unsqueeze(starts, axes=[1]))  # [bags, indices]: at or after the beginning of the bag …
    if not (isinstance(count, int) and count == 1):
        never = g.constant(np.zeros((1, 1), dtype=np.bool_))
        later = g.take(inside, 0, 1, count)
        later = g.concat([later, g.expand(never, (1, size))], axis=0)
        inside = g.and_(inside, g.not_(later))  # … and before the next bag's
    if padding_idx is not None and padding_idx >= 0:
        inside = g.and_(inside, g.unsqueeze(g.ne(g.cast(indices, INT64), padding_idx), axes=[0]))
    wide = g.unsqueeze(inside, axes=[2])
    many = g.unsqueeze(rows, axes=[0])
    number = g.sum_reduce(g.cast(wide, weight.dtype), axes=[1])
    if mode == 2:
        top = extreme(g, g.select(wide, many, -math.inf), [1], "max_reduce")
        out = g.select(g.gt(number, 0.0), top, 0.0)
    else:
        out = g.sum_reduce(g.select(wide, many, 0.0), axes=[1])
        out = g.div(out, g.max(number, 1.0)) if mode == 1 else out
    return g.squeeze(out, axes=[1]), None, None, None
