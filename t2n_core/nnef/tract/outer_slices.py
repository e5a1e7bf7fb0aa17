"""Slices that all leave out the first part of one value, that crash some releases when they declutter a model.

Their pass `PushSliceUp` moves slices before the operation that computes their input. Where all readers of a value are
slices of one axis, it splits the value at their bounds, and fails unless one of them is 0 (sonos/tract#2247). It
cannot split a boolean value at all, and a value in many parts splits each operation that computes it, until a part is
left out. Some releases fail when a slice is moved to another slice of the same axis, and the first release when a slice
is moved before an operator that broadcasts an operand along its axis.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from t2n_core.nnef.graph import BOOL, Operation, Value, new_operation, readers_of, values_in
from t2n_core.nnef.shapes import BROADCASTING, UNARY
from t2n_core.nnef.sizes.dims import Shape, as_dim, same
from t2n_core.nnef.sizes.reshapes import ReshapePart, reshape_parts
from t2n_core.nnef.tract.builder import TractBuilder
from t2n_core.nnef.tract.constants import BARRIER
from t2n_core.nnef.tract.optimiser import KEEP_ELEMENTS, is_zero

_NOT_ELEMENTWISE: Final = frozenset(
    """softmax batch_normalization tract_core_softmax tract_core_log_softmax tract_core_trilu tract_core_rms_norm
    tract_transformers_rms_norm tract_core_cumsum tract_core_scatter_elements tract_core_scatter_nd tract_core_fft
    prelu""".split()
)
_ELEMENTWISE: Final = (UNARY - _NOT_ELEMENTWISE) | {"tract_core_cast"}
_SLICES: Final = frozenset({"slice", "tract_core_dyn_slice"})
_MOST_PARTS: Final = 3
"""Slices of one value that stay, such as queries, keys and values; more of them are steps of a loop."""
_REDUCTIONS: Final = frozenset("sum_reduce max_reduce min_reduce mean_reduce".split())


@dataclass(frozen=True, slots=True)
class _Slices:
    """The slices that become the only readers of a value."""

    axis: int
    begin: int
    leaves: tuple[Operation, ...]
    """The operations of the graph; the one with the least begin comes first."""


def separate_outer_slices(g: TractBuilder) -> None:
    """Put a `pad` before one of the slices of each value whose slices all leave out its first part, or of a slice.

    No slice is moved across it, so that the value is not split. Slices of weights are stored instead.
    """
    if not (g.traits.splits_values_at_slices or g.traits.slices_broadcast_operands):
        return
    readers = readers_of(g.graph)
    moved: dict[Value, list[_Slices]] = {}
    outputs = set(map(id, g.graph.outputs))
    for operation in reversed(list(g.graph.operations)):
        if len(operation.outputs) != 1 or id(operation.outputs[0]) in outputs:
            continue
        (value,) = operation.outputs
        if operation.name == "tract_core_shape_of":  # sliced before any pass
            continue
        is_constant = g.facts.is_constant(value)
        of_readers = [list(_slices_of(value, reader, readers, moved)) for reader in readers.get(value, ())]
        if g.traits.slices_broadcast_operands:
            if is_constant:
                continue
            of_all = list(itertools.chain.from_iterable(of_readers))
            stopped = [slices for slices in of_all if _broadcasts(operation, slices.axis)]
            for leaf in {id(leaf): leaf for slices in stopped for leaf in slices.leaves}.values():
                _separate(g, leaf)
            moved[value] = [slices for slices in of_all if slices not in stopped]
            continue
        for slices in _of_all_readers(of_readers):
            of_all_readers = [leaf for group in slices for leaf in group.leaves]
            # a slice that comes along several readers is one part, but several slices of the value
            begin, leaves = slices[0].begin, tuple({id(leaf): leaf for leaf in of_all_readers}.values())
            splits = len(of_all_readers) > 1 and (begin > 0 or value.dtype == BOOL)
            fails = splits or (g.traits.fails_at_nested_slices and _is_slice_of(operation, slices[0].axis))
            if is_constant:
                for leaf in leaves if fails else ():
                    _store(g, leaf)
            elif fails or len(leaves) > _MOST_PARTS:
                _separate(g, next((leaf for leaf in leaves if not _is_dropped(leaf, readers)), leaves[0]))
            else:
                moved.setdefault(value, []).append(replace(slices[0], leaves=leaves))


def _of_all_readers(of_readers: Sequence[Sequence[_Slices]]) -> Iterator[list[_Slices]]:
    """Yield for each axis that all readers slice their slices of it, by their begins."""
    for axis in {slices.axis: None for of_reader in of_readers for slices in of_reader}:
        of_axis = [next((slices for slices in of_reader if slices.axis == axis), None) for of_reader in of_readers]
        axis_slices = [slices for slices in of_axis if slices is not None]
        if len(axis_slices) == len(of_axis):
            yield sorted(axis_slices, key=lambda slices: slices.begin)


def _slices_of(
    value: Value,
    reader: Operation,
    readers: Mapping[Value, Sequence[Operation]],
    moved: Mapping[Value, Sequence[_Slices]],
) -> Iterator[_Slices]:
    """Yield a reader of a value if it is a slice, and the slices that are moved across the reader.

    A slice of that slice along the same axis becomes a slice of the value, whatever else reads that slice.
    """
    if reader.name in _SLICES and reader.arguments["input"] is value and (own_slice := _own_slice(reader)) is not None:
        inner = [consumer for consumer in readers.get(reader.outputs[0], ()) if _is_slice_of(consumer, own_slice.axis)]
        yield replace(own_slice, leaves=(*inner, reader))
    for later in moved.get(reader.outputs[0], ()) if len(reader.outputs) == 1 else ():
        for operand, axis in _operands(reader, later.axis):
            if operand is value:
                yield replace(later, axis=axis)


def _own_slice(operation: Operation) -> _Slices | None:
    """Return a slice of one axis; a dynamic bound, which fixed symbols make a number, counts as 1."""
    arguments = operation.arguments
    if operation.name == "tract_core_dyn_slice":
        return _Slices(arguments["axis"], _least(arguments["start"]), (operation,))
    strides: Sequence[int] = arguments.get("stride") or [1]
    is_plain = len(arguments["axes"]) == 1 and list(strides) == [1]
    return _Slices(arguments["axes"][0], _least(arguments["begin"][0]), (operation,)) if is_plain else None


def _broadcasts(operation: Operation, axis: int) -> bool:
    """Return whether an operand, which may be a number, has one element along an axis of several, or may have."""
    if operation.name not in BROADCASTING:
        return False
    shape = operation.outputs[0].shape
    shapes = [operand.shape if isinstance(operand, Value) else () for operand in operation.arguments.values()]
    extents = [((1,) * (len(shape) - len(operand_shape)) + tuple(operand_shape))[axis] for operand_shape in shapes]
    return not all(same(extent, shape[axis]) for extent in extents)


def _is_slice_of(operation: Operation, axis: int) -> bool:
    """Return whether an operation is a slice of this axis."""
    own_slice = _own_slice(operation) if operation.name in _SLICES else None
    return own_slice is not None and own_slice.axis == axis


def _is_dropped(operation: Operation, readers: Mapping[Value, Sequence[Operation]]) -> bool:
    """Return whether the engine drops what an operation computes, since nothing reads it but products with zeros."""
    consumers = readers.get(operation.outputs[0], ())
    return bool(consumers) and all(
        (consumer.name == "mul" and any(map(is_zero, consumer.arguments.values())))
        or (consumer.name in KEEP_ELEMENTS and _is_dropped(consumer, readers))
        for consumer in consumers
    )


def _least(bound: Any) -> int:
    return bound if isinstance(bound, int) else 1


def _operands(operation: Operation, axis: int) -> Iterator[tuple[Value, int]]:
    """Yield the operands of an operation, each with its axis that becomes `axis` of the result.

    None for an operator that the engine moves no slice across.
    """
    name, arguments, shape = operation.name, operation.arguments, operation.outputs[0].shape
    if name in _ELEMENTWISE or name in BROADCASTING or (name == "concat" and axis != arguments["axis"]):
        for value in operation.inputs():
            if value.rank == len(shape) and same(value.shape[axis], shape[axis]):
                yield value, axis
    elif (name in _REDUCTIONS and axis not in arguments["axes"]) or (name == "slice" and axis not in arguments["axes"]):
        yield arguments["input"], axis
    elif name == "transpose":
        yield arguments["input"], arguments["axes"][axis]
    elif name == "unsqueeze" and axis not in arguments["axes"]:
        yield arguments["input"], axis - sum(new_axis < axis for new_axis in arguments["axes"])
    elif name == "squeeze":
        remaining_axes = [index for index in range(arguments["input"].rank) if index not in arguments["axes"]]
        yield arguments["input"], remaining_axes[axis]
    elif name == "reshape":
        source_axis = _before_reshape(arguments["input"].shape, shape).get(axis)
        if source_axis is not None:
            yield arguments["input"], source_axis
    elif name == "matmul":
        yield from _factors(arguments, axis, len(shape))
    elif name == "tract_core_einsum":
        terms, result = arguments["expr"].split("->")
        for value, term in zip(values_in(arguments["inputs"]), terms.split(","), strict=False):
            if result[axis] in term:
                yield value, term.index(result[axis])


def _before_reshape(before: Shape, after: Shape) -> dict[int, int]:
    """Return the axes after a reshape that it keeps, apart from inserted and removed ones of size 1, by number."""
    source_axes: dict[int, int] = {}
    start = shift = 0
    for part in [*reshape_parts(before, after), ReshapePart(len(before), (), ())]:
        source_axes.update((axis + shift, axis) for axis in range(start, part.start))
        old = [axis for axis, extent in enumerate(part.before, part.start) if not same(extent, 1)]
        new = [axis for axis, extent in enumerate(part.after, part.start + shift) if not same(extent, 1)]
        sizes = [part.before[axis - part.start] for axis in old]
        if len(old) == len(new) and all(same(after[axis], size) for axis, size in zip(new, sizes, strict=True)):
            source_axes.update(zip(new, old, strict=True))
        start, shift = part.start + part.count, shift + len(part.after) - part.count
    return source_axes


def _factors(arguments: dict[str, Any], axis: int, rank: int) -> Iterator[tuple[Value, int]]:
    for name, own_axis in (("A", rank - 2), ("B", rank - 1)):
        value = arguments[name]
        swapped = rank - 1 if own_axis == rank - 2 else rank - 2
        if axis == own_axis:
            yield value, swapped if arguments.get(f"transpose{name}") else own_axis
        elif axis < rank - 2 and not same(value.shape[axis], 1):
            yield value, axis


def _separate(g: TractBuilder, leaf: Operation) -> None:
    """Pad the input of a slice by one element at the end of its axis; a boolean one gets a barrier, since no `pad`."""
    value: Value = leaf.arguments["input"]
    axis = leaf.arguments["axis"] if leaf.name == "tract_core_dyn_slice" else leaf.arguments["axes"][0]
    if value.dtype == BOOL:
        diagonal = _constant_before(g, leaf, np.asarray(-(1 << 30), dtype=np.int64))
        apart = Value(g.unique(f"{value.name}_apart"), value.dtype, value.shape)
        operation = new_operation(BARRIER, {"input": value, "k": diagonal, "upper": True}, apart, leaf.origin)
    else:
        shape = tuple(as_dim(extent + int(index == axis)) for index, extent in enumerate(value.shape))
        apart = Value(g.unique(f"{value.name}_apart"), value.dtype, shape)
        padding = [(0, int(index == axis)) for index in range(value.rank)]
        zero = 0.0 if value.dtype.kind == "f" else 0
        arguments = {"input": value, "padding": padding, "border": "constant", "value": zero}
        operation = new_operation("pad", arguments, apart, leaf.origin)
    g.graph.operations.insert(g.graph.operations.index(leaf), operation)
    leaf.arguments["input"] = apart


def _store(g: TractBuilder, leaf: Operation) -> None:
    """Make a slice of a weight a variable of its own: the engine does not always fold it before it moves slices."""
    (value,) = leaf.outputs
    if value.weight is not None:
        leaf.name, leaf.dtype = "variable", g.variable_dtype(value.dtype)
        leaf.arguments = {"shape": list(value.weight.shape), "label": g.unique(value.name)}


def _constant_before(g: TractBuilder, operation: Operation, array: NDArray[Any]) -> Value:
    """Return the variable of an array, which stands before an operation of the finished graph."""
    constant, operations = g.constant(array), g.graph.operations
    producer = constant.producer
    assert producer is not None
    if operations.index(producer) > operations.index(operation):
        operations.remove(producer)
        operations.insert(operations.index(operation), producer)
    return constant
