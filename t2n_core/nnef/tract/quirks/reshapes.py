"""Quirks of `reshape`."""

from __future__ import annotations

from t2n_core.nnef.tract.builder import TractBuilder
from t2n_core.nnef.tract.optimiser import is_sequence, is_sum_of_product
from t2n_core.nnef.tract.quirks.quirk import BARRIER_BEFORE, Statement, fenced, quirk


@quirk(
    "reshape",
    ("0.23.0", "0.23.9"),
    when=lambda statement: is_sequence(statement.get("input")),
    reason="a `reshape` of a scan's result is moved into the scan, which then fails",
    safe=BARRIER_BEFORE,
)
def reshape_of_scan(g: TractBuilder, statement: Statement) -> Statement:
    """Put a barrier after the input."""
    return fenced(g, statement, [statement.get("input")])


@quirk(
    "reshape",
    ("0.20", "0.20.19"),
    when=lambda statement: is_sum_of_product(statement.get("input")),
    reason="a `reshape` of a sum is moved into the product that is a part of it, which then reads and writes "
    "elsewhere: wrong numbers, or the process dies",
    safe=BARRIER_BEFORE,
)
def reshape_of_sum(g: TractBuilder, statement: Statement) -> Statement:
    """Put a barrier after the input."""
    return fenced(g, statement, [statement.get("input")])


__all__ = ["reshape_of_scan", "reshape_of_sum"]
