"""Quirks of convolutions."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import sympy

from t2n_core.nnef.graph import Value
from t2n_core.nnef.shapes import overruns_row
from t2n_core.nnef.sizes.dims import as_dim, floor_div
from t2n_core.nnef.tract.barriers import axes_barrier
from t2n_core.nnef.tract.builder import TractBuilder
from t2n_core.nnef.tract.optimiser import passes_strides_wrongly
from t2n_core.nnef.tract.quirks.quirk import BARRIER_OF_AXES_BEFORE, OperationView, quirk


def _per_axis(operation: OperationView, name: str) -> list[int]:
    """Return the strides or dilations of all spatial axes."""
    return list(operation.get(name) or [1] * (operation.get("input").rank - 2))


def _fields(operation: OperationView) -> list[int]:
    """Return how many elements a window spans along each spatial axis."""
    sizes = operation.get("filter").shape[2:]
    return [spread * (int(k) - 1) + 1 for spread, k in zip(_per_axis(operation, "dilation"), sizes, strict=True)]


def _with_padded(g: TractBuilder, operation: OperationView, axes: Sequence[int]) -> OperationView:
    """Return a convolution whose padding along some spatial axes is a separate operation."""
    borders = list(operation.get("padding"))
    amounts = [(0, 0), (0, 0), *(pair if axis in axes else (0, 0) for axis, pair in enumerate(borders))]
    if not any(map(any, amounts)):
        return operation
    value = g.pad(operation.get("input"), padding=amounts, border="constant", value=0.0)
    left = [(0, 0) if axis in axes else pair for axis, pair in enumerate(borders)]
    return operation.with_arguments(input=value, padding=left)


# ------------------------------------------------------------------------------------------------- rows too short
def _overruns(operation: OperationView) -> bool:
    """Return whether a window overruns the last of two spatial axes, which needs padding."""
    padding, value = operation.get("padding"), operation.get("input")
    if value.rank != 4 or not padding or not any(padding[1]):
        return False
    return overruns_row(value.shape[3], _fields(operation)[1], padding[1][0], _per_axis(operation, "stride")[1])


@quirk(
    "conv",
    (None, "0.23.0"),
    when=_overruns,
    reason="a window begins after the end of a row, and the engine writes beyond its memory",
    safe=f"`pad` the last axis first, and then {BARRIER_OF_AXES_BEFORE}: a decluttered `conv` takes a padding over",
)
def overrun_row(g: TractBuilder, operation: OperationView) -> OperationView:
    """Pad the rows before."""
    padded = _with_padded(g, operation, [1])
    return padded.with_arguments(input=axes_barrier(g, padded.get("input"), [3]))


# ---------------------------------------------------------------------------------------------- one window too many
def _with_rest(operation: OperationView) -> list[int]:
    """Return the dynamic spatial axes on which a stride may leave a rest that no window reaches.

    Automatic padding counts as a rest.
    """
    padding, shape = operation.get("padding"), operation.get("input").shape[2:]
    axes = []
    for axis, (extent, step) in enumerate(zip(shape, _per_axis(operation, "stride"), strict=True)):
        if step > 1 and not isinstance(extent, int):
            rest = sympy.expand(extent + sum(padding[axis]) - _fields(operation)[axis]) if padding else None
            if rest is None or any(number % step for number in rest.as_coefficients_dict().values()):
                axes.append(axis)
    return axes


@quirk(
    "conv",
    ("0.20.19", "0.21.0"),
    when=lambda operation: bool(_with_rest(operation)),
    reason="the number of windows along an axis of dynamic size is rounded up, not down",
    safe="`pad`, then `slice` to the part that windows reach, then `conv` without padding",
)
def rounded_up_windows(g: TractBuilder, operation: OperationView) -> OperationView:
    """Crop the input, with its padding, to whole windows."""
    axes = _with_rest(operation)
    if not operation.get("padding"):
        raise g.fail(
            "a `conv` with automatic padding and a stride along a dynamic axis is not supported for this release"
        )
    operation = _with_padded(g, operation, axes)
    value, fields, strides = operation.get("input"), _fields(operation), _per_axis(operation, "stride")
    for axis in axes:
        extent = floor_div(as_dim(value.shape[axis + 2] - fields[axis]), strides[axis]) * strides[axis] + fields[axis]
        value = g.take(value, axis + 2, 0, as_dim(extent))
    return operation.with_arguments(input=value)


# -------------------------------------------------------------------------------------------- strides that are moved
def _has_moved_stride(operation: OperationView) -> bool:
    """Return whether the stride of a window of one element is moved before the operators that compute the input."""
    sizes, strides = operation.get("filter").shape[2:], _per_axis(operation, "stride")
    strided = any(size == 1 and stride > 1 for size, stride in zip(sizes, strides, strict=True))
    value, moved = _before_gathers(operation.get("input"), _strided_axes(operation))
    return strided and bool(moved) and passes_strides_wrongly(value, operation.facts.is_constant)


def _strided_axes(operation: OperationView) -> list[int]:
    return [axis + 2 for axis, stride in enumerate(_per_axis(operation, "stride")) if stride > 1]


def _before_gathers(value: Value, axes: Collection[int]) -> tuple[Value, set[int]]:
    """Return the input of a chain of gathers, and the `axes` that no gather in it indexes."""
    moved = set(axes)
    while value.producer is not None and value.producer.name == "tract_core_gather":
        source: Value = value.producer.arguments["input"]
        if source.rank != value.rank:
            break
        moved.discard(value.producer.arguments["axis"])
        value = source
    return value, moved


@quirk(
    "conv",
    when=_has_moved_stride,
    reason="the stride of a window of one element is moved before the `softmax`, product, `reshape`, `slice` from a "
    "dynamic begin or convolution of one element over a dynamic axis that computes the input: wrong values after a "
    "`softmax`, a graph that does not load after the others; up to 0.22 where the model is decluttered",
    safe=BARRIER_OF_AXES_BEFORE,
)
def moved_stride(g: TractBuilder, operation: OperationView) -> OperationView:
    """Put a barrier after the input."""
    return operation.with_arguments(input=axes_barrier(g, operation.get("input"), _strided_axes(operation)))


# ------------------------------------------------------------------------------------------- filters in one piece
_IN_ONE_PIECE = frozenset({"variable", "concat", "tract_core_cast"})
"""Operators whose results are contiguous in memory."""


def _has_inserted_axis(operation: OperationView) -> bool:
    """Return whether a depthwise filter over one axis is computed, possibly by inserting its unit axis."""
    filters, groups = operation.get("filter"), operation.get("groups")
    if filters.rank != 3 or filters.shape[1] != 1 or filters.shape[2] == 1 or filters.shape[0] != groups:
        return False
    return filters.producer is not None and filters.producer.name not in _IN_ONE_PIECE


@quirk(
    "conv",
    ("0.21.11", None),
    when=_has_inserted_axis,
    reason="the rows of a depthwise filter are located by the stride of its unit axis, which is wrong if that axis was "
    "inserted into a tensor",
    safe="`concat` of two slices of the filter",
)
def inserted_axis(g: TractBuilder, operation: OperationView) -> OperationView:
    """Concatenate the filter from its slices: the engine folds constants before the first run."""
    filters = operation.get("filter")
    parts = [g.take(filters, 2, 0, 1), g.take(filters, 2, 1, filters.shape[2])]
    return operation.with_arguments(filter=g.concat(parts, axis=2))
