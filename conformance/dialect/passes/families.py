"""The families of programs: `programs("slices")` yields the same ones in every process and release."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from conformance.dialect.passes.lines import Line, Lines
from conformance.dialect.passes.moves import elements as e
from conformance.dialect.passes.moves import products as p
from conformance.dialect.passes.moves import shapes as s
from conformance.dialect.passes.moves.loops import looped
from conformance.dialect.passes.program import Program
from t2n_core.dialect.cases.draw import Draw

COUNT: Final = 60
"""Programs of each family."""
LEAST: Final = 2
MOST: Final = 4
"""Statements of a program."""
_SIZES: Final = (4, 6, 3, 5, 8, 1, 2, 7)
Move = Callable[[Lines, Line], Line | None]
_AROUND: Final[tuple[Move, ...]] = (e.elements, e.sum_with_input, e.scaled)
_AXES: Final[tuple[Move, ...]] = (s.merged, s.divided, s.turned, s.regrouped, s.with_axis)
_PARTS: Final[tuple[Move, ...]] = (s.part, s.parts, s.thinned, s.halved)
_PRODUCTS: Final[tuple[Move, ...]] = (p.multiplied, p.convolved, p.convolved, p.contracted, p.compared, p.pooled)
FAMILIES: Final[dict[str, tuple[Sequence[Move], Sequence[Move]]]] = {
    "slices": (
        (*_AROUND, s.joined, p.multiplied, s.tiled, *_PARTS),
        (*_PARTS, s.parts, s.turned, s.merged, e.elements, s.gathered),
    ),
    "joins": (
        (s.joined, s.padded, s.stacked, s.halved, s.tiled),
        (*_PARTS, s.joined, s.joined, s.padded, e.elements, s.turned, s.reduced, s.stacked),
    ),
    "reshapes": (
        (*_AXES, s.stacked),
        (*_AXES, s.without_axis, *_AROUND, s.reduced, s.normalised, s.part, s.thinned, s.joined, s.gathered, s.tiled),
    ),
    "scans": (
        (looped, *_AXES, e.elements, s.joined, s.thinned),
        (*(looped,) * 4, *_AXES, s.without_axis, *_PARTS, s.reduced, s.joined, p.multiplied, e.sum_with_input),
    ),
    "products": (
        (*_PRODUCTS, *_AXES, s.padded, *_PARTS),
        (*_PRODUCTS * 2, *_AXES, *_AROUND, *_PARTS, s.padded, s.normalised, s.joined, s.reduced),
    ),
    "constants": (
        (e.neutral, e.constant, e.chosen, e.scaled, s.reduced),
        (
            *(e.neutral, e.constant, e.widened, e.scaled, p.multiplied),
            *(s.joined, s.padded, s.turned, s.merged, s.part, s.reduced, s.tiled, s.gathered),
        ),
    ),
    "branches": (
        (e.elements, e.twice, s.joined, s.turned, p.multiplied, looped, s.halved),
        (e.elements, e.twice, s.parts, s.turned, s.merged, e.neutral, s.reduced, looped, e.chosen, s.thinned),
    ),
}
"""By family the first statements of a program, and the further ones."""


def programs(family: str, count: int = COUNT) -> Iterator[Program]:
    """Yield programs of a family, drawn from its name and their number."""
    for number in range(count):
        yield _drawn(Draw(family, number))


def _drawn(draw: Draw) -> Program:
    first, further = FAMILIES[draw.op]
    step_count = draw.integer(LEAST, MOST)
    while True:
        lines = Lines(draw)
        rank = draw.pick([3, 3, 3, 4] if draw.op == "products" else [2, 3, 3, 4])
        shape = [_SIZES[at] for at in draw.permutation(len(_SIZES))[:rank]]
        lines.given(shape, draw.integer(0, rank - 1) if draw.number % 3 == 2 else None)
        while len(lines.steps) < step_count:
            move = draw.pick(first if not lines.steps else further)
            move(lines, lines.values[-1] if draw.integer(0, 3) else draw.pick(lines.values))
        if len(lines.steps) <= MOST:
            return lines.program(_outputs(draw, lines))


def _outputs(draw: Draw, lines: Lines) -> list[str]:
    """Return the results that nothing reads, in a third of the programs one of the others, too; of branches not all."""
    read = {name for step in lines.steps for name in step.reads()}
    made = [name for step in lines.steps for name in step.results]
    outputs = [name for name in made if name not in read]
    inner = [name for name in made if name in read]
    if draw.op == "branches" and len(outputs) > 1:
        outputs.remove(draw.pick(outputs))
    if inner and draw.integer(0, 2) == 0:
        outputs.append(draw.pick(inner))
    return outputs
