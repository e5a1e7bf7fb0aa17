"""Reshapes with dynamic sizes, axis by axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy

from t2n_core.nnef.emitter import Expected
from t2n_core.nnef.graph import Value
from t2n_core.nnef.shapes import infer
from t2n_core.nnef.sizes.dims import Dim, as_dim, at_most, is_static, shape_text
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.nnef.sizes.reshapes import ReshapePart, factors, inserted_axes, join_parts, reshape_parts
from t2n_core.nnef.tract.builder import TractBuilder
from t2n_core.nnef.tract.sizes.empty import without_empty


def reshape(g: TractBuilder, input: Value, *, shape: Sequence[Dim]) -> Value:
    """Write a reshape.

    With dynamic sizes only the axes that change are reshaped, and each group of them separately if there are many:
    the engine compares element counts as expressions, and does not see that `(B*T)*U` is `(U*B)*T`. Axes of size 1 are
    inserted and removed without such a comparison: from 0.23.0 on `(2*T+2)/5` differs from itself simplified twice.
    """
    target_shape = tuple(as_dim(d) for d in shape)
    if g.traits.fails_on_empty_reshapes and any(at_most(extent, 0) for extent in input.shape):
        return g.fill(0, target_shape, input.dtype)
    if g.traits.fails_on_empty_reshapes:
        _narrow(g, without_empty(g.graph.sizes, input.shape))
    parts = [] if is_static(input.shape + target_shape) else reshape_parts(input.shape, target_shape)
    if not parts:
        return g.one("reshape", input, shape=list(target_shape))
    if (inserted := inserted_axes(input.shape, target_shape)) is not None:
        return g.one("unsqueeze", input, axes=inserted)
    if (removed := inserted_axes(target_shape, input.shape)) is not None:
        return g.one("squeeze", input, axes=removed)
    if g.options.streaming and not g.traits.streams_reshapes:
        _refuse_regrouped_steps(g, parts)
    merged_part = join_parts(parts, input.shape, target_shape)
    if max(factors(merged_part.before), factors(merged_part.after)) <= 2:
        parts = [merged_part]
    for part in reversed(parts):
        if g.traits.fails_on_empty_reshapes:
            _narrow(g, _without_dropped_axes(g.graph.sizes, part))
        axis_range: dict[str, Any] = {"axis_start": part.start, "axis_count": part.count}
        if part.count == input.rank:
            axis_range = {}
        out = Expected(*infer("reshape", {"input": input, "shape": part.after, **axis_range}))
        input = g.one("reshape", input, shape=_engine_sizes(part), out=out, **axis_range)
    return input


def _refuse_regrouped_steps(g: TractBuilder, parts: Sequence[ReshapePart]) -> None:
    """Raise LowerError for a reshape that divides or joins steps; the engine may remove one that only merges axes."""
    for part in parts:
        regroups = len(part.before) > 1 and len(part.after) > 1
        if regroups and any(map(g.is_streamed, part.before)):
            raise g.fail(
                f"a reshape from {shape_text(part.before)} to {shape_text(part.after)} is not possible in a stream",
                hint="tract 0.23.0 and later have it",
            )


def _narrow(g: TractBuilder, sizes: SizeRange) -> None:
    """State that the archive holds for these sizes alone, with the reason."""
    if sizes != g.graph.sizes:
        g.graph.sizes = sizes
        g.graph.narrowed.append(f"{g.spec} fails to reshape an empty tensor in {g.node.origin or g.node.name}")


def _without_dropped_axes(sizes: SizeRange, part: ReshapePart) -> SizeRange:
    """Return the part of a range in which the engine does not take a reshape for the removal of an axis.

    At T = 0 the sizes [T, 5] become [5 * T], and both begin with 0: the engine removes the 5 after it, which fails.
    """
    for size in part.before:
        if isinstance(size, int) or not size.is_Symbol or sizes.bounds[size.name][0] > 0:
            continue
        before, after = ([sympy.sympify(extent).subs(size, 0) for extent in side] for side in (part.before, part.after))
        while before and after and before[0] == after[0]:
            before, after = before[1:], after[1:]
        while before and after and before[-1] == after[-1]:
            before, after = before[:-1], after[:-1]
        if len(before) == 1 and before[0] != 1 and not after:
            sizes = sizes.narrowed(sympy.Ge(size, 1, evaluate=False))
    return sizes


def _engine_sizes(part: ReshapePart) -> list[Dim]:
    """Return the sizes after a reshape, products as the engine computes them.

    To it, `T*3-9` is not `(T-3)*3`, nor is `B*H*W` always `B*(H*W)`.
    """
    (first, *more) = part.after
    if more or isinstance(first, int) or not (first.is_Add or any(factors((extent,)) > 1 for extent in part.before)):
        return list(part.after)
    return [sympy.Mul(*part.before, evaluate=False)]


FORMS = {"reshape": reshape}
