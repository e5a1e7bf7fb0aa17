"""Decomposition of a reshape into parts: which axes become which, with each part as small as possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sympy

from t2n_core.nnef.sizes.dims import Dim, Shape, product, same


@dataclass(frozen=True, slots=True)
class ReshapePart:
    """Adjacent axes that a reshape replaces by others with as many elements."""

    start: int
    """The first axis, in the shape before."""
    before: Shape
    after: Shape

    @property
    def count(self) -> int:
        """Return the number of axes in the shape before."""
        return len(self.before)


def reshape_parts(before: Shape, after: Shape) -> list[ReshapePart]:
    """Return the axes that a reshape changes, in parts that are as small as possible.

    Each part has at least one axis in the shape before: a new axis of size 1 belongs to the part of a neighbour.
    """
    pieces: list[ReshapePart] = []
    start = at = 0
    while start < len(before) and at < len(after):
        count, length = _least(before[start:], after[at:])
        pieces.append(ReshapePart(start, before[start : start + count], after[at : at + length]))
        start, at = start + count, at + length
    if pieces and (start < len(before) or at < len(after)):  # axes of size 1
        last = pieces.pop()
        rest = last.before + before[start:], last.after + after[at:]
        pieces.append(ReshapePart(last.start, *rest))
    return [p for p in pieces if not _is_kept(p)]


def regroups(before: Shape, after: Shape) -> bool:
    """Return whether a reshape does more than insert and remove axes of size 1."""
    extents = [extent for extent in before if not same(extent, 1)], [extent for extent in after if not same(extent, 1)]
    return len(extents[0]) != len(extents[1]) or not all(map(same, *extents))


def inserted_axes(before: Shape, after: Shape) -> list[int] | None:
    """Return the axes of size 1 in `after` that a reshape inserts, if it changes nothing else."""
    rest, inserted = list(before), list[int]()
    for axis, extent in enumerate(after):
        if rest and same(rest[0], extent):
            rest.pop(0)
        elif same(extent, 1):
            inserted.append(axis)
        else:
            return None
    return None if rest else inserted


def merged_axis(before: Shape, after: Shape) -> int | None:
    """Return the axis into which a reshape merges others, apart from axes of size 1, if it changes nothing else."""
    old = [axis for axis, extent in enumerate(before) if not same(extent, 1)]
    new = [axis for axis, extent in enumerate(after) if not same(extent, 1)]
    while old and new and same(before[old[0]], after[new[0]]):
        old, new = old[1:], new[1:]
    while old and new and same(before[old[-1]], after[new[-1]]):
        old, new = old[:-1], new[:-1]
    return new[0] if len(old) > 1 and len(new) == 1 else None


def merged_axes(before: Shape, after: Shape) -> list[int]:
    """Return the axes into which a reshape merges others, apart from axes of size 1, whatever else it changes."""
    axes, shift = list[int](), 0
    for part in reshape_parts(before, after):
        old, new = ([extent for extent in shape if not same(extent, 1)] for shape in (part.before, part.after))
        if len(old) > 1 and len(new) == 1:
            axes.append(part.start + shift)
        shift += len(part.after) - part.count
    return axes


def join_parts(parts: Sequence[ReshapePart], before: Shape, after: Shape) -> ReshapePart:
    """Return one part that spans all parts and the axes between them."""
    start, stop = parts[0].start, parts[-1].start + parts[-1].count
    return ReshapePart(start, before[start:stop], after[start : len(after) - (len(before) - stop)])


def factors(shape: Shape) -> int:
    """Return the number of symbolic factors in the number of elements of a shape."""
    return sum(
        len([f for f in sympy.Mul.make_args(extent) if not f.is_number])
        for extent in shape
        if not isinstance(extent, int)
    )


def _least(before: Shape, after: Shape) -> tuple[int, int]:
    """Return the fewest leading axes that have as many elements in both shapes."""
    lengths = ((i, j) for i in range(1, len(before) + 1) for j in range(1, len(after) + 1))
    for i, j in sorted(lengths, key=sum):
        if same(product(before[:i]), product(after[:j])):
            return i, j
    return len(before), len(after)


def _is_kept(part: ReshapePart) -> bool:
    both: list[tuple[Dim, Dim]] = list(zip(part.before, part.after, strict=False))
    return len(part.before) == len(part.after) and all(same(a, b) for a, b in both)
