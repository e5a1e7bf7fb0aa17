"""Quirks of products: `matmul`, `einsum`, and `conv` with a window of one element, which becomes a product."""

from __future__ import annotations

from t2n_core.nnef.graph import Value, values_in
from t2n_core.nnef.shapes import broadcast, is_broadcast
from t2n_core.nnef.sizes.dims import Dim, is_static
from t2n_core.nnef.tract.barriers import axes_barrier
from t2n_core.nnef.tract.builder import TractBuilder
from t2n_core.nnef.tract.optimiser import changes_axes, folds_batch, is_single_concat, is_tiled
from t2n_core.nnef.tract.quirks.quirk import (
    BARRIER_BEFORE,
    BARRIER_OF_AXES_BEFORE,
    GATHER_BEFORE,
    OperationView,
    quirk,
    with_barriers,
)

_PIECES = frozenset({"slice", "tract_core_dyn_slice", "tract_core_gather"})
"""Operators from whose bounds the engine infers the size of an axis."""


# --------------------------------------------------------------------------------------- an operand read past its end
def _overread(operation: OperationView) -> list[str]:
    """Return the operands whose batch is repeated to a constant's batch."""
    return [
        name
        for name, constant in (("A", "B"), ("B", "A"))
        if operation.facts.is_constant(operation.get(constant))
        and is_broadcast(operation.get(name).shape[:-2], operation.get(constant).shape[:-2])
    ]


@quirk(
    "matmul",
    (None, "0.20"),
    when=lambda operation: bool(_overread(operation)),
    reason="an operand whose batch is repeated to that of a constant is read beyond its end",
    safe="`tile` of that operand before",
)
def batched_constant(g: TractBuilder, operation: OperationView) -> OperationView:
    """Repeat the operand's batch to the common batch of both."""
    for name in _overread(operation):
        value, other = operation.get(name), operation.get("B" if name == "A" else "A")
        value = g.lift(value, other.rank)
        batch = broadcast(value.shape[:-2], g.lift(other, value.rank).shape[:-2])
        operation = operation.with_arguments(**{name: g.expand(value, (*batch, *value.shape[-2:]))})
    return operation


# ----------------------------------------------------------------------------------- an axis inserted beside the batch
def _beside_batch(operation: OperationView) -> list[str]:
    """Return the operand of a product with a batched constant, if its axes may be changed in front of it."""
    return [
        name
        for name, constant in (("A", "B"), ("B", "A"))
        if operation.facts.is_constant(operation.get(constant))
        and any(size != 1 for size in operation.get(constant).shape[:-2])
        and changes_axes(operation.get(name))
    ]


@quirk(
    "matmul",
    (None, "0.20"),
    when=lambda operation: bool(_beside_batch(operation)),
    reason="where the model is decluttered, an axis that was removed from an operand is inserted before the batch of a "
    "constant, which then is the batch of another axis",
    safe=GATHER_BEFORE,
)
def axis_of_constant(g: TractBuilder, operation: OperationView) -> OperationView:
    """Put a barrier after the operand."""
    return with_barriers(g, operation, [operation.get(name) for name in _beside_batch(operation)])


# -------------------------------------------------------------------------------------- inner sizes written differently
def _inner(operation: OperationView) -> tuple[int, int]:
    """Return the axis of each operand that the product sums over."""
    a, b = operation.get("A"), operation.get("B")
    of_a = a.rank - (2 if operation.get("transposeA") else 1)
    return of_a, b.rank - (1 if operation.get("transposeB") else 2)


def _inner_sizes_differ_textually(operation: OperationView) -> bool:
    a, b = operation.get("A"), operation.get("B")
    of_a, of_b = _inner(operation)
    size: Dim = a.shape[of_a]
    if isinstance(size, int) or size.is_Symbol:
        return bool(b.shape[of_b] != size)
    return not (_has_explicit_size(a) and _has_explicit_size(b) and b.shape[of_b] == size)


def _has_explicit_size(value: Value) -> bool:
    return value.producer is not None and value.producer.name in _PIECES


@quirk(
    "matmul",
    (None, "0.21.8"),
    when=_inner_sizes_differ_textually,
    reason="the inner size is written differently in the second operand: the product uses the first element alone, or "
    "fails",
    safe="`slice` of both operands to the same size before",
)
def inner_size(g: TractBuilder, operation: OperationView) -> OperationView:
    """Write the inner size in the same way in both operands.

    If the size is more than a symbol, both operands are sliced to it: the engine may have inferred it itself, for
    example for a convolution.
    """
    a, b = operation.get("A"), operation.get("B")
    of_a, of_b = _inner(operation)
    size: Dim = a.shape[of_a]
    if isinstance(size, int) or size.is_Symbol:
        return operation.with_arguments(B=g.slice(b, axes=[of_b], begin=[0], end=[size]))
    cut = {
        name: g.slice(value, axes=[axis], begin=[0], end=[size])
        for name, value, axis in (("A", a, of_a), ("B", b, of_b))
    }
    return operation.with_arguments(**cut)


# ------------------------------------------------------------------------------------- a product split into a sum
def _concatenated(operation: OperationView) -> list[str]:
    """Return the operands that a `concat` of several values along the axis that the product sums over computes."""
    return [name for name, axis in zip("AB", _inner(operation), strict=True) if _joins(operation.get(name), axis)]


def _joins(value: Value, axis: int) -> bool:
    while value.producer is not None and value.producer.name == "slice":
        value = next(iter(value.producer.inputs()))
    producer = value.producer
    return (
        producer is not None
        and producer.name == "concat"
        and producer.arguments["axis"] == axis
        and not is_single_concat(producer)
    )


@quirk(
    "matmul",
    ("0.20.5", "0.21.2"),
    when=lambda operation: bool(_concatenated(operation)),
    reason="where the model is decluttered, a product with a `concat` becomes the sum of two, and an axis that a later "
    "operator removes is removed in one of them only: wrong values, or the process dies",
    safe=BARRIER_OF_AXES_BEFORE,
)
def product_of_concat(g: TractBuilder, operation: OperationView) -> OperationView:
    """Put a barrier after the operand, which is a `concat` along its other axis."""
    for name, axis in zip("AB", _inner(operation), strict=True):
        if name in _concatenated(operation):
            value = operation.get(name)
            other = 2 * value.rank - 3 - axis
            operation = operation.with_arguments(**{name: axes_barrier(g, value, [other])})
    return operation


# ------------------------------------------------------------------------------------------ a product of one element
def _is_scalar(operation: OperationView) -> bool:
    """Return whether the result is a single element, summed over merged axes, whose size is more than a symbol."""
    size: Dim = operation.get("A").shape[_inner(operation)[0]]
    merged = not isinstance(size, int) and not size.is_Symbol
    return merged and all(isinstance(extent, int) and extent == 1 for extent in operation.results[0].shape)


@quirk(
    "matmul",
    ("0.21.2", "0.21.4"),
    ("0.21.13", None),
    when=_is_scalar,
    reason="a product of one element over axes that a `reshape` has merged does not load once its axes are squeezed",
    safe="`sum_reduce` of the `mul` of both operands",
)
def scalar_product(g: TractBuilder, operation: OperationView) -> OperationView:
    """Sum the products of the elements."""
    a, b = operation.get("A"), operation.get("B")
    swapped = [*range(a.rank - 2), a.rank - 1, a.rank - 2]
    row = g.permute(a, swapped) if operation.get("transposeA") else a
    other = b if operation.get("transposeB") else g.permute(b, swapped)
    arguments = {"input": g.mul(row, other), "axes": [a.rank - 1]}
    return OperationView("sum_reduce", arguments, operation.results, operation.facts)


# ---------------------------------------------------------------------------------- operands that the optimiser moves
_MOVED = {"matmul": ("A", "B"), "conv": ("input",), "tract_core_einsum": ("inputs",)}
"""The arguments with the operands of a product that the optimiser moves a `tile` across."""


def _tiled_operands(operation: OperationView) -> list[Value]:
    operands = [value for name in _MOVED[operation.operator] for value in values_in(operation.get(name))]
    return [value for value in operands if is_tiled(value)]


@quirk(
    "matmul conv tract_core_einsum",
    ("0.21.12", None),
    when=lambda operation: bool(_tiled_operands(operation)),
    reason="a `tile` of an operand is removed, although the result then lacks the size",
    safe=BARRIER_BEFORE,
)
def tiled_operand(g: TractBuilder, operation: OperationView) -> OperationView:
    """Put a barrier after the operand."""
    return with_barriers(g, operation, _tiled_operands(operation))


def _folded_operands(operation: OperationView) -> list[Value]:
    a, b = operation.get("A"), operation.get("B")
    return [value for value, other in ((a, b), (b, a)) if value.rank > 2 and folds_batch(value, other)]


@quirk(
    "matmul",
    ("0.21.12", None),
    when=lambda operation: bool(_folded_operands(operation)),
    reason="a `reshape` of one operand's batch is folded into the other operand, although that has one element there",
    safe=BARRIER_BEFORE,
)
def folded_batch(g: TractBuilder, operation: OperationView) -> OperationView:
    """Put a barrier after the operand."""
    return with_barriers(g, operation, _folded_operands(operation))


# ------------------------------------------------------------------------------------------------ products with 0
def _zero_operands(operation: OperationView) -> list[Value]:
    """Return the dynamic operands that are a product with zeros."""
    operands = [value for name in _MOVED[operation.operator] for value in values_in(operation.get(name))]
    return [value for value in operands if not is_static(value.shape) and operation.facts.is_times_zero(value)]


@quirk(
    "matmul tract_core_einsum",
    ("0.21.13", None),
    when=lambda operation: bool(_zero_operands(operation)),
    reason="a dynamic operand that is multiplied by 0 becomes a scalar where the model is decluttered, and the product "
    "does not load",
    safe=BARRIER_BEFORE,
)
def zero_operand(g: TractBuilder, operation: OperationView) -> OperationView:
    """Put a barrier after the operand."""
    return with_barriers(g, operation, _zero_operands(operation))
