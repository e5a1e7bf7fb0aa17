"""Hazards of dynamic sizes: what some releases do not load or run although the statement is right.

Each has cases in `tests/contract/nnef/test_size_hazards.py`.
"""

from __future__ import annotations

from typing import Final

import sympy

from t2n_core.nnef.sizes.dims import Dim, FloorDiv
from t2n_core.nnef.tract.quirks.hazard import Condition, Hazard, hazard
from t2n_core.nnef.tract.quirks.quirk import OperationView


def _has_dynamic_end(operation: OperationView) -> bool:
    return not isinstance(operation.get("end"), int)


def _has_dynamic_batch_alone(operation: OperationView) -> bool:
    batch, _, *spatial = operation.results[0].shape
    return not isinstance(batch, int) and all(isinstance(extent, int) for extent in spatial)


def _has_unordered_volume(operation: OperationView) -> bool:
    """Return whether the engine does not recognise the product of the spatial extents when it sees it again.

    It compares products term by term, but not products of two sizes, or of a sum and one other extent.
    """
    extents = [extent for extent in operation.results[0].shape[2:] if extent != 1]
    dynamic = [extent for extent in extents if not isinstance(extent, int)]
    return len(dynamic) > 1 or (len(extents) == 2 and any(map(_is_sum, dynamic)))


def _is_sum(extent: Dim) -> bool:
    """Return whether the engine keeps an extent as a sum: a number is added to the dividend of a single quotient."""
    terms = [term for term in sympy.Add.make_args(extent) if not term.is_Integer]
    return isinstance(extent, sympy.Add) and not (len(terms) == 1 and isinstance(terms[0], FloorDiv))


def _has_as_many_rows_as_columns(operation: OperationView) -> bool:
    """Return whether a matrix product has as many dynamic rows as columns, as scores of attention have."""
    if operation.operator == "matmul":
        rows, columns = operation.results[0].shape[-2:]
        return not isinstance(rows, int) and rows == columns
    terms, result = operation.get("expr").split("->")
    sizes: list[list[Dim]] = []
    pairs = list(zip(terms.split(","), operation.get("inputs"), strict=False))[:2]
    for (term, value), (other, _) in zip(pairs, reversed(pairs), strict=True):
        sizes.append([value.shape[i] for i, axis in enumerate(term) if axis in result and axis not in other])
    return any(not isinstance(size, int) and size in sizes[1] for size in sizes[0])


SIZE_HAZARDS: Final[tuple[Hazard, ...]] = (
    hazard(
        "tract_core_range",
        ("0.20.19", "0.20.21"),
        when=(Condition("`end` is dynamic", _has_dynamic_end, "end"),),
        reason="the length of a range that ends at a size of an axis is not computed: `TDim is not a number`",
        safe="a fixed length, or another release",
    ),
    hazard(
        "conv",
        ("0.21.2", "0.21.4"),
        when=(Condition("only the batch is dynamic", _has_dynamic_batch_alone),),
        reason="the product is taken for one of fixed sizes and fails when it runs: `Undetermined symbol`",
        safe="a fixed batch, or a dynamic spatial axis",
    ),
    hazard(
        "conv",
        ("0.21.0", "0.21.4"),
        when=(Condition("the product of the spatial extents is one of two sizes or of a sum", _has_unordered_volume),),
        reason="the engine does not see that both sides of its own reshape have equally many elements",
        safe="one dynamic spatial axis whose extent is no sum",
    ),
    hazard(
        "matmul tract_core_einsum",
        ("0.21.14", "0.21.15"),
        when=(Condition("its rows and its columns have the same dynamic size", _has_as_many_rows_as_columns),),
        reason="the optimiser exchanges the operands without end",
        safe="a fixed size, or another release",
    ),
)
