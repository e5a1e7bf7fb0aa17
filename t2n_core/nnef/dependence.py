"""Outputs of a graph that do not depend on the elements of its inputs: constants, and functions of sizes."""

from __future__ import annotations

from t2n_core.nnef.graph import Graph, Value

_SIZES_ALONE = frozenset({"tract_core_shape_of", "shape_of"})
"""Operators whose result does not depend on the elements of their operand."""


def constant_outputs(graph: Graph) -> frozenset[str]:
    """Return the names of the outputs that depend on no element of an input."""
    reached: set[Value] = set(graph.inputs)
    for operation in graph.operations:
        if operation.name not in _SIZES_ALONE and any(value in reached for value in operation.inputs()):
            reached.update(operation.outputs)
    return frozenset(value.name for value in graph.outputs if value not in reached)


__all__ = ["constant_outputs"]
