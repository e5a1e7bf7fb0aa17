"""Quirks of `reshape`."""

from __future__ import annotations

from t2n_core.nnef.tract.builder import TractBuilder
from t2n_core.nnef.tract.optimiser import is_sequence, is_sum_of_product
from t2n_core.nnef.tract.quirks.quirk import BARRIER_BEFORE, OperationView, quirk, with_barriers


@quirk(
    "reshape",
    ("0.23.0", "0.23.9"),
    when=lambda operation: is_sequence(operation.get("input")),
    reason="a `reshape` of a scan's result is moved into the scan, which then fails",
    safe=BARRIER_BEFORE,
)
def reshape_of_scan(g: TractBuilder, operation: OperationView) -> OperationView:
    """Put a barrier after the input."""
    return with_barriers(g, operation, [operation.get("input")])


@quirk(
    "reshape",
    ("0.20", "0.20.19"),
    when=lambda operation: is_sum_of_product(operation.get("input")),
    reason="a `reshape` of a sum is moved into the product that is part of it, which then reads and writes out of "
    "bounds: wrong values, or the process dies",
    safe=BARRIER_BEFORE,
)
def reshape_of_sum(g: TractBuilder, operation: OperationView) -> OperationView:
    """Put a barrier after the input."""
    return with_barriers(g, operation, [operation.get("input")])
