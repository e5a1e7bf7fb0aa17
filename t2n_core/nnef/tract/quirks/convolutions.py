"""Quirks of arithmetic on the results of convolutions, which the engine folds into kernel and bias."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from t2n_core.nnef.dat import in_blocks
from t2n_core.nnef.graph import Operation, Value
from t2n_core.nnef.sizes.dims import same
from t2n_core.nnef.tract.builder import TractBuilder
from t2n_core.nnef.tract.graph_facts import GraphFacts
from t2n_core.nnef.tract.optimiser import convolutions_of
from t2n_core.nnef.tract.quirks.quirk import OperationView, quirk


def _convolutions(facts: GraphFacts, value: Any, other: Any) -> Iterator[Operation]:
    """Yield the convolutions that compute `value` and may take `other` into their kernel and bias.

    They take an operand that has one element, or may have one at some sizes, for each output channel.
    """
    if isinstance(value, Value) and facts.is_from_convolution(value):
        sizes = [size for size in other.shape if isinstance(size, int)] if isinstance(other, Value) else []
        count = math.prod(sizes)
        yield from (
            convolution
            for convolution in convolutions_of(value)
            if same(count, convolution.arguments["filter"].shape[0])
        )


def _scales_blocks(operation: OperationView) -> bool:
    """Return whether a kernel that is stored in blocks of 4 bits may be scaled."""
    x, y = operation.get("x"), operation.get("y")
    convolutions = (*_convolutions(operation.facts, x, y), *_convolutions(operation.facts, y, x))
    return any(in_blocks(convolution.arguments["filter"].weight) for convolution in convolutions)


@quirk(
    "mul div",
    ("0.21.12", None),
    when=_scales_blocks,
    reason="a scale of a convolution's result is folded into its kernel, which blocks of 4 bits do not allow",
    safe="`neg` of both operands before",
)
def scaled_blocks(g: TractBuilder, operation: OperationView) -> OperationView:
    """Scale the negated results by the negated weight."""
    pair = {name: operation.get(name) for name in ("x", "y")}
    return operation.with_arguments(**{n: g.neg(v) if isinstance(v, Value) else -v for n, v in pair.items()})


@quirk(
    "sub",
    ("0.21.0", None),
    when=lambda operation: any(_convolutions(operation.facts, operation.get("y"), operation.get("x"))),
    reason="the result of a convolution is added to a value of each channel, not subtracted from it: the value is "
    "folded into the bias, and the kernel stays; up to 0.22 where the model is decluttered",
    safe="`add` of the `neg` of the second operand",
)
def subtracted_convolution(g: TractBuilder, operation: OperationView) -> OperationView:
    """Add the negated results."""
    arguments = {"x": operation.get("x"), "y": g.neg(operation.get("y"))}
    return OperationView("add", arguments, operation.results, operation.facts)
