"""Quirks of operators that change axes, and of scans beside them."""

from __future__ import annotations

from t2n_core.nnef.graph import Value
from t2n_core.nnef.sizes.reshapes import regroups, reshape_parts
from t2n_core.nnef.tract.barriers import axes_barrier
from t2n_core.nnef.tract.builder import TractBuilder
from t2n_core.nnef.tract.optimiser import (
    changes_axes,
    is_sequence,
    is_sum_of_points,
    is_sum_of_product,
    results_of_scans,
)
from t2n_core.nnef.tract.quirks.quirk import (
    BARRIER_BEFORE,
    BARRIER_OF_AXES_BEFORE,
    GATHER_BEFORE,
    OperationView,
    quirk,
    with_barriers,
)


def _regrouped(operation: OperationView) -> list[int]:
    """Return the first axis of each part of a reshape that does more than insert and remove axes of size 1."""
    parts = reshape_parts(operation.get("input").shape, operation.results[0].shape)
    return [part.start for part in parts if regroups(part.before, part.after)]


def _behind_barrier(g: TractBuilder, operation: OperationView) -> OperationView:
    """Return a reshape that does not move before what computes its input."""
    return operation.with_arguments(input=axes_barrier(g, operation.get("input"), _regrouped(operation)))


@quirk(
    "reshape",
    (None, "0.23.9"),
    when=lambda operation: bool(_regrouped(operation)) and is_sequence(operation.get("input")),
    reason="a `reshape` of a scan's result that merges or splits axes is moved into the scan, which then fails; up to "
    "0.22 where the model is decluttered",
    safe=BARRIER_OF_AXES_BEFORE,
)
def reshape_of_scan(g: TractBuilder, operation: OperationView) -> OperationView:
    """Put a barrier after the input."""
    return _behind_barrier(g, operation)


def _moves_axes_of_scan(operation: OperationView) -> bool:
    """Return whether a `transpose` of a scan's result does more than exchange its first two axes."""
    value, axes = operation.get("input"), list(operation.get("axes"))
    first_swapped = [1, 0, *range(2, value.rank)]
    return any(axes != first_swapped or value.rank != result.rank for result in results_of_scans(value))


@quirk(
    "transpose",
    (None, "0.20"),
    when=_moves_axes_of_scan,
    reason="where the model is decluttered, a `transpose` of a scan's result is moved into the scan, where operands "
    "with fewer elements do not follow it",
    safe=GATHER_BEFORE,
)
def transpose_of_scan(g: TractBuilder, operation: OperationView) -> OperationView:
    """Put a barrier after the input."""
    return with_barriers(g, operation, [operation.get("input")])


_OPERANDS = ("scan", "state", "full")
"""The arguments of a scan that list operands: a name in the body, the operand, and more."""


@quirk(
    "tract_core_scan",
    (None, "0.20"),
    when=lambda operation: any(changes_axes(value) for name in _OPERANDS for _, value, *_ in operation.get(name)),
    reason="where the model is decluttered, an operator that inserts, removes or merges axes of an operand is moved "
    "into the scan, which then fails",
    safe=BARRIER_OF_AXES_BEFORE,
)
def reshape_before_scan(g: TractBuilder, operation: OperationView) -> OperationView:
    """Put a barrier after each operand of which an axis is inserted, removed or merged."""

    def stopped(value: Value) -> Value:
        axes = [axis for axis, extent in enumerate(value.shape) if not g.is_streamed(extent)]  # a stream is no `concat`
        return axes_barrier(g, value, axes) if changes_axes(value) else value

    operands = {name: [(key, stopped(v), *rest) for key, v, *rest in operation.get(name)] for name in _OPERANDS}
    return operation.with_arguments(**operands)


@quirk(
    "reshape squeeze",
    ("0.20", "0.20.19"),
    when=lambda operation: is_sum_of_product(operation.get("input")),
    reason="a `reshape` or `squeeze` of a sum is moved into the product that is part of it, which then reads and "
    "writes out of bounds: wrong values, or the process dies",
    safe=BARRIER_BEFORE,
)
def reshape_of_sum(g: TractBuilder, operation: OperationView) -> OperationView:
    """Put a barrier after the input."""
    return with_barriers(g, operation, [operation.get("input")])


_SEVERAL_BATCHES = 4
"""Least rank of a product with several batch axes."""


def _removes_axis_of_sum(operation: OperationView) -> bool:
    value, result = operation.get("input"), operation.results[0]
    return list(value.shape).count(1) > list(result.shape).count(1) and is_sum_of_product(value, _SEVERAL_BATCHES)


@quirk(
    "squeeze reshape",
    ("0.20.19", "0.21.6"),
    when=_removes_axis_of_sum,
    reason="an axis of size 1 that is removed from a sum is removed alone from the product that is part of it, if that "
    "has several batch axes: wrong values, or the process dies",
    safe=BARRIER_BEFORE,
)
def squeeze_of_sum(g: TractBuilder, operation: OperationView) -> OperationView:
    """Put a barrier after the input. The engine would not stop to move the axis if that were a `concat`."""
    return with_barriers(g, operation, [operation.get("input")])


@quirk(
    "reshape",
    ("0.20.19", "0.21.6"),
    when=lambda operation: bool(_regrouped(operation)) and is_sum_of_points(operation.get("input")),
    reason="where the model is decluttered, a convolution of one element becomes a product, and a `reshape` of a sum "
    "that merges or splits axes is moved into it: the process dies",
    safe=BARRIER_OF_AXES_BEFORE,
)
def reshape_of_points(g: TractBuilder, operation: OperationView) -> OperationView:
    """Put a barrier after the input."""
    return _behind_barrier(g, operation)
