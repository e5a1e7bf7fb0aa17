"""Sums and means of float32 over many elements.

Every release adds the elements one by one in float32, so that each addition has an error of up to 2^-24 of the
partial sum. Over n elements the error is at most n * 2^-24 of the sum of their absolute values: more than 0.1 % from
2^15 elements on, where PyTorch adds in pairs.

Sums over at most `LONGEST` elements are left as they are; their error is below the tolerance of the level
`approximate`, 5e-4. Longer sums, and sums over dynamic axes that may be longer, end with a sum in float64:

* Static axes are first summed in float32, in parts of at most `LONGEST` elements. A long axis is split into two factors
  for that. This costs nothing, since the engine adds rows faster than elements. The engine merges adjacent sums of one
  dtype, so that only the float64 keeps the two separate.
* A dynamic axis is summed in float64 only, together with the static ones next to it. The copy takes 0.2 to 0.5 ns per
  element, and ten times as much if it needs more than 32 MB.
* Of several dynamic axes, such as an image's, only the last one is summed in float64, after the others in float32. The
  error is the error of the sum over the others.

Sums in the bodies of loops are left as they are too: a loop runs over the rows of a matrix, which are short, and two
casts in each of its steps would cost more than the sum.
"""

from __future__ import annotations

from collections.abc import Sequence

from t2n_core.nnef.emitter import Expected
from t2n_core.nnef.graph import FLOAT32, Value
from t2n_core.nnef.sizes.dims import Dim, Shape, at_most, is_static, product, symbols_of
from t2n_core.nnef.tract.builder import TractBuilder
from t2n_core.nnef.tract.forms.quotients import in_float64

LONGEST = 8192
"""The most elements that one operation sums in float32: 8192 * 2^-24 is 4.9e-4."""
_ROWS = 64
"""The most rows that a long static axis is split into; the rest in float64 is then small."""


def may_be_long(extents: Sequence[Dim]) -> bool:
    """Return whether axes of these extents may have more than `LONGEST` elements together."""
    return not at_most(product(extents), LONGEST)


def write_reduction(
    g: TractBuilder, operator: str, value: Value, axes: Sequence[int], out: Expected | None = None
) -> Value:
    """Write the sum or the mean over axes, which are kept with size 1; a mean is the mean of means of equal parts."""
    if value.dtype != FLOAT32 or g.in_loop or not _may_be_long(value, axes):
        return write_single(g, operator, value, axes, out)
    last = max([axis for axis in axes if may_be_long([value.shape[axis]])] or axes)
    extent = value.shape[last]
    rows = _factor(extent) if isinstance(extent, int) and may_be_long([extent]) else 1
    if rows == 1:
        return _in_two_steps(g, operator, value, axes, _first_axes(value.shape, axes, last))
    split = g.reshape_to(value, [*value.shape[:last], rows, int(extent) // rows, *value.shape[last + 1 :]])
    moved = sorted([last, *(axis + (axis >= last) for axis in axes)])
    result = _in_two_steps(g, operator, split, moved, _first_axes(split.shape, moved, last + 1))
    return g.squeeze(result, axes=[last])


def _in_two_steps(g: TractBuilder, operator: str, value: Value, axes: Sequence[int], first: Sequence[int]) -> Value:
    """Reduce the first axes in float32, and the others in float64."""
    if first:
        value = write_single(g, operator, value, first)
    rest = [axis for axis in axes if axis not in first]
    return in_float64(g, value, lambda wide: write_single(g, operator, wide, rest))


def write_single(
    g: TractBuilder, operator: str, value: Value, axes: Sequence[int], out: Expected | None = None
) -> Value:
    """Write a sum or a mean in one operation, or a mean over dynamic axes as a sum and a quotient.

    Releases that follow sizes take the symbolic count in a `mean_reduce` for a mask, and derive from it which part of
    each value before the mean matters: expressions that grow exponentially with the number of sums and slices.
    """
    count = product(value.shape[axis] for axis in axes)
    if operator == "mean_reduce" and g.traits.follows_sizes and not (g.in_loop or isinstance(count, int)):
        return g.one("div", g.one("sum_reduce", value, axes=list(axes)), g.size(count, value.dtype), out=out)
    return g.one(operator, value, axes=list(axes), out=out)


def _first_axes(shape: Shape, axes: Sequence[int], last: int) -> list[int]:
    """Return the axes that are reduced in float32, before the last one and the rest."""
    others = [axis for axis in axes if axis != last]
    if not is_static(shape[axis] for axis in axes):
        return [] if is_static(shape[axis] for axis in others) else others
    first: list[int] = []
    for axis in others:
        if not may_be_long([shape[index] for index in (*first, axis)]):
            first.append(axis)
    return [] if all(shape[axis] == 1 for axis in first) else first


def _may_be_long(value: Value, axes: Sequence[int]) -> bool:
    """Return whether a sum may be long. One axis of a square is not: so large a tensor does not fit into memory."""
    free = symbols_of(extent for axis, extent in enumerate(value.shape) if axis not in axes)
    return may_be_long([value.shape[axis] for axis in axes if not _is_of(free, value.shape[axis])])


def _is_of(symbols: set[str], extent: Dim) -> bool:
    """Return whether an extent is dynamic, with no symbols but these."""
    return set() < symbols_of([extent]) <= symbols


def _factor(extent: int) -> int:
    """Return the largest factor that is at most `_ROWS`."""
    return next(n for n in range(_ROWS, 0, -1) if extent % n == 0)
