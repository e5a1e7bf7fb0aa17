"""Statements on axes: slices, concatenations, reshapes and transposes, reductions."""

from __future__ import annotations

from typing import Final

from conformance.dialect.passes.lines import Line, Lines

_REDUCTIONS: Final = ("sum_reduce", "max_reduce", "mean_reduce")


def known_axis(lines: Lines, x: Line, least: int = 1) -> int | None:
    """Return a known axis of at least `least` elements, or None."""
    axes = [axis for axis in x.axes() if x.shape[axis] >= least]
    return lines.draw.pick(axes) if axes else None


def part(lines: Lines, x: Line) -> Line | None:
    """Take a slice, or the whole of an axis."""
    axis = known_axis(lines, x, 2)
    if axis is None:
        return None
    begin = lines.draw.integer(0, x.shape[axis] - 1)
    return lines.slice(x, axis, begin, lines.draw.integer(begin + 1, x.shape[axis]))


def parts(lines: Lines, x: Line) -> Line | None:
    """Take two slices of one axis, which may overlap and leave elements out; return the last one."""
    axis = known_axis(lines, x, 4)
    if axis is None:
        return None
    extent = x.shape[axis]
    for _ in range(2):
        begin = lines.draw.integer(0, extent - 1)
        last = lines.slice(x, axis, begin, lines.draw.integer(begin + 1, extent))
    return last


def joined(lines: Lines, x: Line) -> Line | None:
    """Concatenate with an input, a stored tensor, itself, or another value of fitting shape."""
    axis = known_axis(lines, x)
    if axis is None:
        return None
    shape = (*x.shape[:axis], lines.draw.integer(1, 4), *x.shape[axis + 1 :])
    fitting = [
        value
        for value in lines.values
        if len(value.shape) == len(x.shape)
        and value.symbol == x.symbol
        and all(a == b for at, (a, b) in enumerate(zip(value.shape, x.shape, strict=True)) if at != axis)
    ]
    others = [*fitting, lines.given(shape, x.symbol)] if lines.draw.flag() else fitting
    if x.symbol is None and lines.draw.integer(0, 2) == 0:
        others = [lines.stored(shape)]
    pair = [x, lines.draw.pick(others)]
    return lines.concat(pair if lines.draw.flag() else pair[::-1], axis)


def padded(lines: Lines, x: Line) -> Line | None:
    """Pad an axis with zeros."""
    axis = known_axis(lines, x)
    return None if axis is None else lines.pad(x, axis, lines.draw.integer(0, 2), lines.draw.integer(0, 2))


def turned(lines: Lines, x: Line) -> Line | None:
    """Exchange axes."""
    return lines.transpose(x, lines.draw.permutation(len(x.shape))) if len(x.shape) > 1 else None


def merged(lines: Lines, x: Line) -> Line | None:
    """Make two neighbouring axes one."""
    starts = [axis for axis in x.axes() if axis + 1 in x.axes()]
    if not starts:
        return None
    start = lines.draw.pick(starts)
    return lines.reshape(x, start, 2, [x.shape[start] * x.shape[start + 1]])


def divided(lines: Lines, x: Line) -> Line | None:
    """Make two axes of one."""
    choices = [(axis, first) for axis in x.axes() for first in range(2, x.shape[axis]) if x.shape[axis] % first == 0]
    if not choices:
        return None
    axis, first = lines.draw.pick(choices)
    return lines.reshape(x, axis, 1, [first, x.shape[axis] // first])


def regrouped(lines: Lines, x: Line) -> Line | None:
    """Exchange the extents of two neighbouring axes without moving an element."""
    starts = [axis for axis in x.axes() if axis + 1 in x.axes()]
    if not starts:
        return None
    start = lines.draw.pick(starts)
    return lines.reshape(x, start, 2, [x.shape[start + 1], x.shape[start]])


def with_axis(lines: Lines, x: Line) -> Line:
    """Insert an axis of one element."""
    return lines.unsqueeze(x, lines.draw.integer(0, len(x.shape)))


def without_axis(lines: Lines, x: Line) -> Line | None:
    """Remove an axis of one element."""
    axes = [axis for axis in x.axes() if x.shape[axis] == 1]
    return lines.squeeze(x, lines.draw.pick(axes)) if axes and len(x.shape) > 1 else None


def reduced(lines: Lines, x: Line) -> Line | None:
    """Reduce an axis to one element."""
    axis = known_axis(lines, x)
    return None if axis is None else lines.reduce(x, axis, lines.draw.pick(_REDUCTIONS))


def normalised(lines: Lines, x: Line) -> Line | None:
    """Take the softmax of an axis."""
    axis = known_axis(lines, x)
    return None if axis is None else lines.step("softmax", x.shape, x.symbol, x=x, axes=[axis])


def thinned(lines: Lines, x: Line) -> Line | None:
    """Take each second or third element of an axis, from the first or a later one on."""
    axis = known_axis(lines, x, 3)
    if axis is None:
        return None
    begin, stride, extent = lines.draw.integer(0, 1), lines.draw.integer(2, 3), x.shape[axis]
    shape = (*x.shape[:axis], -(-(extent - begin) // stride), *x.shape[axis + 1 :])
    arguments = {"axes": [axis], "begin": [begin], "end": [extent], "stride": [stride]}
    return lines.step("slice", shape, x.symbol, input=x, **arguments)


def tiled(lines: Lines, x: Line) -> Line | None:
    """Repeat an axis."""
    axis = known_axis(lines, x)
    if axis is None:
        return None
    repeats = [lines.draw.integer(2, 3) if at == axis else 1 for at in range(len(x.shape))]
    shape = [extent * count for extent, count in zip(x.shape, repeats, strict=True)]
    return lines.step("tile", shape, x.symbol, input=x, repeats=repeats)


def gathered(lines: Lines, x: Line) -> Line | None:
    """Take elements of an axis by stored indices."""
    axis = known_axis(lines, x)
    if axis is None:
        return None
    places = lines.draw.indices([lines.draw.integer(1, 5)], x.shape[axis], negative=False)
    shape = (*x.shape[:axis], len(places), *x.shape[axis + 1 :])
    indices = lines.stored(places.shape, places)
    return lines.step("tract_core_gather", shape, x.symbol, input=x, indices=indices, axis=axis)


def stacked(lines: Lines, x: Line) -> Line:
    """Stack a value on an input, as a new axis."""
    axis = lines.draw.integer(0, len(x.shape))
    symbol = x.symbol + 1 if x.symbol is not None and x.symbol >= axis else x.symbol
    values = [x, lines.given(x.shape, x.symbol)]
    return lines.step("stack", (*x.shape[:axis], 2, *x.shape[axis:]), symbol, values=values, axis=axis)


def halved(lines: Lines, x: Line) -> Line | None:
    """Take two slices that make up an axis; return the last one."""
    axis = known_axis(lines, x, 2)
    if axis is None:
        return None
    first = lines.draw.integer(1, x.shape[axis] - 1)
    lines.slice(x, axis, 0, first)
    return lines.slice(x, axis, first, x.shape[axis])
