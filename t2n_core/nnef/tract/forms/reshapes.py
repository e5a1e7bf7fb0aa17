"""Reshapes with dynamic sizes, axis by axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy

from t2n_core.nnef.emitter import Expected
from t2n_core.nnef.graph import Value
from t2n_core.nnef.shapes import infer
from t2n_core.nnef.sizes.dims import Dim, as_dim, at_most, is_static
from t2n_core.nnef.sizes.reshapes import ReshapePart, factors, join_parts, reshape_parts
from t2n_core.nnef.tract.builder import TractBuilder
from t2n_core.nnef.tract.sizes.empty import without_empty


def reshape(g: TractBuilder, input: Value, *, shape: Sequence[Dim]) -> Value:
    """Write a reshape.

    With dynamic sizes only the axes that change are reshaped, and each group of them separately if there are many:
    the engine compares element counts as expressions, and does not see that `(B*T)*U` is `(U*B)*T`.
    """
    wanted = tuple(as_dim(d) for d in shape)
    if g.traits.fails_on_empty_reshapes and any(at_most(extent, 0) for extent in input.shape):
        return g.fill(0, wanted, input.dtype)
    if g.traits.fails_on_empty_reshapes:
        g.graph.sizes = without_empty(g.graph.sizes, input.shape)
    parts = [] if is_static(input.shape + wanted) else reshape_parts(input.shape, wanted)
    if not parts:
        return g.one("reshape", input, shape=list(wanted))
    whole = join_parts(parts, input.shape, wanted)
    if max(factors(whole.before), factors(whole.after)) <= 2:
        parts = [whole]
    for part in reversed(parts):
        place: dict[str, Any] = {"axis_start": part.start, "axis_count": part.count}
        if part.count == input.rank:
            place = {}
        out = Expected(*infer("reshape", {"input": input, "shape": part.after, **place}))
        input = g.one("reshape", input, shape=_engine_sizes(part), out=out, **place)
    return input


def _engine_sizes(part: ReshapePart) -> list[Dim]:
    """Return the sizes after a reshape, products as the engine computes them: to it, `T*3-9` is not `(T-3)*3`."""
    (first, *more) = part.after
    if more or isinstance(first, int) or not first.is_Add:
        return list(part.after)
    return [sympy.Mul(*part.before, evaluate=False)]


FORMS = {"reshape": reshape}
