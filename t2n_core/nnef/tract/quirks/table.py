"""All quirks, in the order in which the emitter applies them: a later one may apply to a repair of an earlier one."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from packaging.version import Version

from t2n_core.nnef.tract.builder import TractBuilder
from t2n_core.nnef.tract.quirks import convolutions, elementwise, products, reshapes, sums, windows
from t2n_core.nnef.tract.quirks.quirk import OperationView, Quirk, by_operator

QUIRKS: tuple[Quirk, ...] = (
    elementwise.swapped_sub,
    elementwise.mixed_second_operand,
    elementwise.uniform_tensor,
    elementwise.full_second_operand,
    elementwise.scalar_beside_reshape,
    elementwise.misread_unit_axis,
    sums.empty_sum,
    products.batched_constant,
    products.axis_of_constant,
    products.product_of_concat,
    products.inner_size,
    products.scalar_product,
    products.tiled_operand,
    products.folded_batch,
    products.zero_operand,
    convolutions.scaled_blocks,
    convolutions.subtracted_convolution,
    windows.overrun_row,
    windows.rounded_up_windows,
    windows.moved_stride,
    windows.inserted_axis,
    reshapes.reshape_of_scan,
    reshapes.transpose_of_scan,
    reshapes.reshape_before_scan,
    reshapes.reshape_of_sum,
    reshapes.squeeze_of_sum,
    reshapes.reshape_of_points,
)


@functools.cache
def quirks_of(version: Version) -> Mapping[str, tuple[Quirk, ...]]:
    """Return the quirks of a release, by operator."""
    return by_operator(QUIRKS, version)


def apply_quirks(g: TractBuilder, operation: OperationView) -> OperationView:
    """Return the operation after the repairs of all quirks that apply to it, which this release computes correctly."""
    quirks = quirks_of(g.spec.version)
    tried: set[str] = set()
    pending = [*quirks.get(operation.operator, ())]
    while pending:
        quirk = pending.pop(0)
        if quirk.name in tried:
            continue
        tried.add(quirk.name)
        if quirk.applies(operation):
            operator, operation = operation.operator, quirk.repair(g, operation)
            if operation.operator != operator:
                pending = [*quirks.get(operation.operator, ())]
    return operation
