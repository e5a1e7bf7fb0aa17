"""Quirks of `reshape`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from t2n_core.nnef.tract.barriers import fence
from t2n_core.nnef.tract.optimiser import is_sequence, is_sum_of_product
from t2n_core.nnef.tract.quirks.quirk import Statement, quirk

if TYPE_CHECKING:
    from t2n_core.nnef.tract.emitter import TractEmitter

_BARRIER = "`tract_core_trilu` of the input before, with a diagonal that keeps all"


@quirk(
    "reshape",
    ("0.23.0", "0.23.9"),
    when=lambda statement: is_sequence(statement.get("input")),
    reason="a `reshape` of a scan's result is moved into the scan, which then fails",
    safe=_BARRIER,
)
def reshape_of_scan(g: TractEmitter, statement: Statement) -> Statement:
    """Put the input behind a barrier."""
    return statement.with_arguments(input=fence(g, statement.get("input")))


@quirk(
    "reshape",
    ("0.20", "0.20.19"),
    when=lambda statement: is_sum_of_product(statement.get("input")),
    reason="a `reshape` of a sum is moved into the product that is a part of it, which then reads and writes "
    "elsewhere: wrong numbers, or the process dies",
    safe=_BARRIER,
)
def reshape_of_sum(g: TractEmitter, statement: Statement) -> Statement:
    """Put the input behind a barrier."""
    return statement.with_arguments(input=fence(g, statement.get("input")))


__all__ = ["reshape_of_scan", "reshape_of_sum"]
