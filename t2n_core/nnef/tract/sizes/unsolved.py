"""Check of input axes such as `2 * T` by separate symbols, where the engine does not compare them.

If no T makes `2 * T` the size of an input axis, the engine leaves T unsolved. If a later axis defines T, nothing
compares the two. So such an axis gets a separate symbol, the scenarios of the range state that it is `2 * T`, and a
slice to `2 * T` restores the extent that the rest of the graph was written for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sympy

from t2n_core.nnef.arguments import replace_values
from t2n_core.nnef.graph import Value, new_operation
from t2n_core.nnef.sizes.dims import symbol, symbols_of
from t2n_core.nnef.tract.builder import TractBuilder


def name_unsolved(g: TractBuilder) -> list[Any]:
    """Replace input axes that the engine would not compare by separate symbols; return the values of these."""
    equations: list[Any] = []
    if not g.traits.leaves_sizes_unsolved:
        return equations
    for value, axis in list(_unsolved_axes(g.graph.inputs)):
        axis_symbol, extent = symbol(g.unique(f"{value.name}_axis_{axis}")), value.shape[axis]
        g.graph.extensions.append(f"tract_symbol {axis_symbol.name}")
        equations.append(sympy.Eq(axis_symbol, extent, evaluate=False))
        _slice(g, value, axis, axis_symbol, extent)
    return equations


def _unsolved_axes(inputs: list[Value]) -> Iterator[tuple[Value, int]]:
    """Yield the axes with a multiple of a symbol that no earlier axis defines and a later one does."""
    axes = [(value, axis, extent) for value in inputs for axis, extent in enumerate(value.shape)]
    sizes = [symbols_of([extent]) for _, _, extent in axes]
    solved: set[str] = set()
    for index, (value, axis, extent) in enumerate(axes):
        if isinstance(extent, int):
            continue
        later = set().union(*sizes[index + 1 :])
        if extent.as_coeff_Add()[1].is_Symbol:
            solved |= sizes[index]
        elif sizes[index] & later - solved:
            yield value, axis


def _slice(g: TractBuilder, value: Value, axis: int, axis_symbol: Any, extent: Any) -> None:
    """Replace an axis of an input by a symbol, and the input by a slice of it in all its readers."""
    external = value.producer
    assert external is not None
    sliced = Value(g.unique(f"{value.name}_in_range"), value.dtype, value.shape)
    value.shape = (*value.shape[:axis], axis_symbol, *value.shape[axis + 1 :])
    external.arguments["shape"] = list(value.shape)
    for operation in g.graph.operations:
        operation.arguments = {
            name: replace_values(a, lambda v: sliced if v is value else v) for name, a in operation.arguments.items()
        }
    g.graph.outputs[:] = [sliced if output is value else output for output in g.graph.outputs]
    operation = new_operation("slice", {"input": value, "axes": [axis], "begin": [0], "end": [extent]}, sliced)
    g.graph.operations.insert(g.graph.operations.index(external) + 1, operation)
