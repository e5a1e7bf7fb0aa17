"""Gathers instead of slices of one element.

Where only slices of one axis read a value, the engine computes it piece by piece, with everything it is computed from:
the steps of a loop that was unrolled in Python are sixty products of one row instead of one product. A `gather` of one
element, which is a copy where it is written here, stays in place.
"""

from __future__ import annotations

from typing import Final

from t2n_core.nnef.graph import Operation, readers_of
from t2n_core.nnef.tract.builder import TractBuilder

FEWEST: Final = 4
"""The number of slices from which on they are replaced; fewer of them save more of the computation than they cost."""
_SOURCES: Final = frozenset({"external", "tract_core_external", "variable"})


def gather_selections(g: TractBuilder) -> None:
    """Replace the slices of computed values, each with the `squeeze` that alone reads it, by gathers of one element."""
    if not g.traits.copies_gathers:
        return
    readers, outputs = readers_of(g.graph), set(g.graph.outputs)
    dropped: set[int] = set()
    for value, slices in readers.items():
        axis = _selected_axis(slices[0])
        is_computed = value.producer is not None and value.producer.name not in _SOURCES
        if axis is None or not is_computed or value in outputs or len(slices) < FEWEST:
            continue
        if any(_selected_axis(operation) != axis for operation in slices):
            continue
        for selection in slices:
            element = selection.outputs[0]
            removals = readers.get(element, [])
            if element not in outputs and len(removals) == 1 and _removes(removals[0], axis):
                arguments = {"input": value, "indices": selection.arguments["begin"][0], "axis": axis}
                removals[0].name, removals[0].arguments = "tract_core_gather", arguments
                dropped.add(id(selection))
    g.graph.operations[:] = [operation for operation in g.graph.operations if id(operation) not in dropped]


def _selected_axis(operation: Operation) -> int | None:
    """Return the axis of a slice of one element; None for other operations."""
    if operation.name != "slice" or len(operation.arguments["axes"]) != 1:
        return None
    begin, end = operation.arguments["begin"][0], operation.arguments["end"][0]
    is_single = isinstance(begin, int) and isinstance(end, int) and begin >= 0 and end == begin + 1
    return int(operation.arguments["axes"][0]) if is_single else None


def _removes(operation: Operation, axis: int) -> bool:
    return operation.name == "squeeze" and operation.arguments["axes"] == [axis]
