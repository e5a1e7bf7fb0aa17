"""Quirks of sums."""

from __future__ import annotations

from t2n_core.nnef.graph import INT64
from t2n_core.nnef.sizes.dims import at_most
from t2n_core.nnef.tract.builder import TractBuilder
from t2n_core.nnef.tract.quirks.quirk import OperationView, quirk


def _empty_axes(operation: OperationView) -> list[int]:
    """Return the summed axes that may be empty, if the engine sums the elements as floats."""
    value = operation.get("input")
    if value.dtype.kind != "f" and value.dtype != INT64:
        return []
    return [axis for axis in operation.get("axes") if not at_most(1, value.shape[axis])]


@quirk(
    "sum_reduce",
    (None, "0.21.6"),
    ("0.23.5", None),
    when=lambda operation: bool(_empty_axes(operation)),
    reason="a sum of floats along an axis without elements ends the process, from 0.23.5 on along the last axis only",
    safe="`concat` of a zero along that axis before",
)
def empty_sum(g: TractBuilder, operation: OperationView) -> OperationView:
    """Append a zero along each axis that may be empty."""
    value = operation.get("input")
    for axis in _empty_axes(operation):
        zero = g.fill(0, (*value.shape[:axis], 1, *value.shape[axis + 1 :]), value.dtype)
        value = g.concat([value, zero], axis=axis)
    return operation.with_arguments(input=value)
