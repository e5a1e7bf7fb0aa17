"""Quirks of products: `matmul`, `conv` with a window of one element, which the engine makes a product, `einsum`."""

from __future__ import annotations

from typing import Any

from t2n_core.nnef.graph import Value, in_blocks, values_in
from t2n_core.nnef.shapes import broadcast, is_broadcast
from t2n_core.nnef.sizes.dims import Dim, same
from t2n_core.nnef.tract.builder import TractBuilder
from t2n_core.nnef.tract.optimiser import folds_batch, is_tiled
from t2n_core.nnef.tract.quirks.quirk import BARRIER_BEFORE, Statement, fenced, quirk

_PIECES = frozenset({"slice", "tract_core_dyn_slice", "tract_core_gather"})
"""Operators whose bounds give the engine the size of an axis."""


# --------------------------------------------------------------------------------------- an operand read past its end
def _overread(statement: Statement) -> list[str]:
    """Return the operands whose batch is repeated to that of a constant."""
    pairs = (("A", "B"), ("B", "A"))
    return [
        name
        for name, constant in pairs
        if statement.facts.is_constant(statement.get(constant))
        and is_broadcast(statement.get(name).shape[:-2], statement.get(constant).shape[:-2])
    ]


@quirk(
    "matmul",
    (None, "0.20"),
    when=lambda statement: bool(_overread(statement)),
    reason="an operand whose batch is repeated to that of a constant is read beyond its end",
    safe="`tile` of that operand before",
)
def batched_constant(g: TractBuilder, statement: Statement) -> Statement:
    """Repeat the batch of the operand to that of both."""
    for name in _overread(statement):
        value, other = statement.get(name), statement.get("B" if name == "A" else "A")
        value = g.lift(value, other.rank)
        batch = broadcast(value.shape[:-2], g.lift(other, value.rank).shape[:-2])
        statement = statement.with_arguments(**{name: g.expand(value, (*batch, *value.shape[-2:]))})
    return statement


# --------------------------------------------------------------------------------------- inner sizes in two spellings
def _inner(statement: Statement) -> tuple[int, int]:
    """Return the axis of each operand that the product sums over."""
    a, b = statement.get("A"), statement.get("B")
    of_a = a.rank - (2 if statement.get("transposeA") else 1)
    return of_a, b.rank - (1 if statement.get("transposeB") else 2)


def _inner_sizes_differ_textually(statement: Statement) -> bool:
    a, b = statement.get("A"), statement.get("B")
    of_a, of_b = _inner(statement)
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
    reason="the inner size is spelled otherwise in the second operand: the product is of the first element alone, or "
    "none at all",
    safe="`slice` of both operands to the same size before",
)
def inner_size(g: TractBuilder, statement: Statement) -> Statement:
    """Spell the inner size alike in both operands.

    A size that is more than a symbol is cut to in both: the engine may have worked it out itself, as of a convolution.
    """
    a, b = statement.get("A"), statement.get("B")
    of_a, of_b = _inner(statement)
    size: Dim = a.shape[of_a]
    if isinstance(size, int) or size.is_Symbol:
        return statement.with_arguments(B=g.slice(b, axes=[of_b], begin=[0], end=[size]))
    cut = {
        name: g.slice(value, axes=[axis], begin=[0], end=[size])
        for name, value, axis in (("A", a, of_a), ("B", b, of_b))
    }
    return statement.with_arguments(**cut)


# ------------------------------------------------------------------------------------------ a product of one element
def _is_scalar(statement: Statement) -> bool:
    """Return whether the result is one element, summed over a size that is more than a symbol: axes were merged."""
    size: Dim = statement.get("A").shape[_inner(statement)[0]]
    merged = not isinstance(size, int) and not size.is_Symbol
    return merged and all(isinstance(extent, int) and extent == 1 for extent in statement.results[0].shape)


@quirk(
    "matmul",
    ("0.23.0", None),
    when=_is_scalar,
    reason="a product of one element over axes that a `reshape` has merged does not load once its axes are squeezed",
    safe="`sum_reduce` of the `mul` of both operands",
)
def scalar_product(g: TractBuilder, statement: Statement) -> Statement:
    """Add up the products of the elements."""
    a, b = statement.get("A"), statement.get("B")
    swapped = [*range(a.rank - 2), a.rank - 1, a.rank - 2]
    row = g.permute(a, swapped) if statement.get("transposeA") else a
    other = b if statement.get("transposeB") else g.permute(b, swapped)
    arguments = {"input": g.mul(row, other), "axes": [a.rank - 1]}
    return Statement("sum_reduce", arguments, statement.results, statement.facts)


# ---------------------------------------------------------------------------------- operands that the optimiser moves
_MOVED = {"matmul": ("A", "B"), "conv": ("input",), "tract_core_einsum": ("inputs",)}
"""The arguments that hold the operands of a product that the optimiser moves a `tile` through."""


def _tiled(statement: Statement) -> list[Value]:
    operands = [value for name in _MOVED[statement.operator] for value in values_in(statement.get(name))]
    return [value for value in operands if is_tiled(value)]


@quirk(
    "matmul conv tract_core_einsum",
    ("0.21.12", None),
    when=lambda statement: bool(_tiled(statement)),
    reason="a `tile` is taken off an operand, although the result then lacks the size",
    safe=BARRIER_BEFORE,
)
def tiled_operand(g: TractBuilder, statement: Statement) -> Statement:
    """Put a barrier after the operand."""
    return fenced(g, statement, _tiled(statement))


def _folding(statement: Statement) -> list[Value]:
    a, b = statement.get("A"), statement.get("B")
    return [value for value, other in ((a, b), (b, a)) if value.rank > 2 and folds_batch(value, other)]


@quirk(
    "matmul",
    ("0.21.12", None),
    when=lambda statement: bool(_folding(statement)),
    reason="a `reshape` of one operand's batch is folded into the other operand, although that has one element there",
    safe=BARRIER_BEFORE,
)
def folded_batch(g: TractBuilder, statement: Statement) -> Statement:
    """Put a barrier after the operand."""
    return fenced(g, statement, _folding(statement))


# --------------------------------------------------------------------------------------------- kernels of 4 bits
_KEPT = frozenset("add sub reshape squeeze unsqueeze transpose copy".split())
"""Operators through which the engine sees the convolution whose results are scaled."""


def _is_of_blocks(value: Any, other: Any, statement: Statement) -> bool:
    """Return whether `value` is what a convolution with a kernel in blocks gives, and `other` may go into that kernel.

    A weight may; a number only where there is one output channel.
    """
    if not isinstance(value, Value) or (isinstance(other, Value) and not statement.facts.is_constant(other)):
        return False
    while value.producer is not None and value.producer.name in _KEPT:
        sources = [one for one in value.producer.inputs() if not statement.facts.is_constant(one)]
        if len(sources) != 1:
            return False
        value = sources[0]
    made = value.producer
    if made is None or made.name != "conv" or not in_blocks(made.arguments["filter"].weight):
        return False
    return isinstance(other, Value) or same(made.arguments["filter"].shape[0], 1)


@quirk(
    "mul div",
    ("0.23.0", None),
    when=lambda statement: any(
        _is_of_blocks(statement.get(one), statement.get(other), statement) for one, other in (("x", "y"), ("y", "x"))
    ),
    reason="the scale of what a convolution gives is multiplied with its kernel, which blocks of 4 bits do not allow",
    safe="`neg` of both operands before",
)
def scaled_blocks(g: TractBuilder, statement: Statement) -> Statement:
    """Scale the negated results by the negated weight."""
    pair = {name: statement.get(name) for name in ("x", "y")}
    return statement.with_arguments(**{n: g.neg(v) if isinstance(v, Value) else -v for n, v in pair.items()})


@quirk(
    "sub",
    ("0.23.0", None),
    when=lambda statement: _is_of_blocks(statement.get("y"), statement.get("x"), statement),
    reason="what a convolution with a kernel in blocks of 4 bits gives is added, not subtracted",
    safe="`add` of the `neg` of the second operand",
)
def subtracted_blocks(g: TractBuilder, statement: Statement) -> Statement:
    """Add the negated results."""
    arguments = {"x": statement.get("x"), "y": g.neg(statement.get("y"))}
    return Statement("add", arguments, statement.results, statement.facts)


__all__ = [
    "batched_constant",
    "folded_batch",
    "inner_size",
    "scalar_product",
    "scaled_blocks",
    "subtracted_blocks",
    "tiled_operand",
]
