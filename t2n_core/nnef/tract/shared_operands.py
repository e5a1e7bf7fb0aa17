"""Expansion of operands that several operations broadcast to the same shape.

The engine computes many elements at a time where both operands have the same shape, or where one is repeated in blocks
whose size it knows. Blocks of a dynamic size it computes one element at a time: rotary positions [1, 1, S, 64] times
the heads [1, 8, S, 64] take three times as long. Expanded once, the positions serve all layers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from t2n_core.nnef.graph import FLOAT16, FLOAT32, Operation, Value, new_operation
from t2n_core.nnef.sizes.dims import Shape, same
from t2n_core.nnef.tract.builder import TractBuilder

FEWEST: Final = 3
"""The number of operations for which an expansion is worth its own cost."""
_OPERATORS: Final = frozenset("add sub mul div max min".split())


def expand_shared_operands(g: TractBuilder) -> None:
    """Expand each operand that at least `FEWEST` operations of the finished graph broadcast to one shape."""
    if not g.traits.vectorises_equal_shapes or g.options.streaming:
        return
    readers: dict[tuple[Value, Shape], list[tuple[Operation, str]]] = {}
    for operation in g.graph.operations:
        for name, operand in _broadcast_operands(operation):
            if not g.facts.is_constant(operand):
                readers.setdefault((operand, operation.outputs[0].shape), []).append((operation, name))
    for (operand, shape), places in readers.items():
        if len(places) >= FEWEST:
            expanded = _expanded(g, operand, shape)
            for operation, name in places:
                operation.arguments[name] = expanded


def _broadcast_operands(operation: Operation) -> Iterator[tuple[str, Value]]:
    """Yield the operands of dynamic blocks that the operation repeats, with the names of their arguments.

    Operands with two dynamic axes are left out: an attention mask that is expanded for every head costs more memory
    traffic than the expansion saves.
    """
    if operation.name not in _OPERATORS:
        return
    shape = operation.outputs[0].shape
    operands = {name: value for name in ("x", "y") if isinstance(value := operation.arguments.get(name), Value)}
    for name, value in operands.items():
        others = [other for key, other in operands.items() if key != name]
        if value.dtype in (FLOAT16, FLOAT32) and others and others[0].shape == shape and _is_repeated(value, shape):
            yield name, value


def _is_repeated(value: Value, shape: Shape) -> bool:
    """Return whether a value is repeated a known number of times, in blocks with exactly one dynamic axis."""
    if value.rank == 0 or value.rank != len(shape) or same(value.shape[-1], 1):
        return False
    pairs = [(have, want) for have, want in zip(value.shape, shape, strict=True) if not same(have, want)]
    is_dynamic = sum(not isinstance(extent, int) for extent in value.shape) == 1
    return is_dynamic and bool(pairs) and all(same(have, 1) and isinstance(want, int) for have, want in pairs)


def _expanded(g: TractBuilder, operand: Value, shape: Shape) -> Value:
    """Return the operand repeated to a shape, by an operation directly after its producer."""
    producer = operand.producer
    assert producer is not None
    expanded = Value(g.unique(f"{operand.name}_expanded"), operand.dtype, shape)
    arguments = {"input": operand, "repeats": g.repeats(operand, shape)}
    tile = new_operation("tile", arguments, expanded, producer.origin)
    g.graph.operations.insert(g.graph.operations.index(producer) + 1, tile)
    return expanded
