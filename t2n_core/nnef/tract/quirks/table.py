"""All quirks, in the order in which the emitter asks them: a repair may give a statement that a later one concerns."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from packaging.version import Version

from t2n_core.nnef.tract.builder import TractBuilder
from t2n_core.nnef.tract.quirks import elementwise, products, reshapes, sums, windows
from t2n_core.nnef.tract.quirks.quirk import Quirk, Statement

QUIRKS: tuple[Quirk, ...] = (
    elementwise.swapped_sub,
    elementwise.mixed_second_operand,
    elementwise.uniform_tensor,
    elementwise.full_second_operand,
    elementwise.misread_unit_axis,
    sums.empty_sum,
    products.batched_constant,
    products.inner_size,
    products.scalar_product,
    products.tiled_operand,
    products.folded_batch,
    products.scaled_blocks,
    products.subtracted_blocks,
    windows.overrun_row,
    windows.rounded_up_windows,
    windows.moved_stride,
    windows.inserted_axis,
    reshapes.reshape_of_scan,
    reshapes.reshape_of_sum,
)


@functools.cache
def quirks_of(version: Version) -> Mapping[str, tuple[Quirk, ...]]:
    """Return the quirks of a release, by operator."""
    found: dict[str, list[Quirk]] = {}
    for one in QUIRKS:
        if one.concerns(version):
            for operator in one.operators:
                found.setdefault(operator, []).append(one)
    return {operator: tuple(quirks) for operator, quirks in found.items()}


def repaired(g: TractBuilder, statement: Statement) -> Statement:
    """Return a statement that this release computes right, made of this one by the quirks that apply to it."""
    quirks = quirks_of(g.spec.version)
    asked: set[str] = set()
    pending = [*quirks.get(statement.operator, ())]
    while pending:
        one = pending.pop(0)
        if one.name in asked:
            continue
        asked.add(one.name)
        if one.applies(statement):
            operator, statement = statement.operator, one.repair(g, statement)
            if statement.operator != operator:
                pending = [*quirks.get(statement.operator, ())]
    return statement


__all__ = ["QUIRKS", "quirks_of", "repaired"]
