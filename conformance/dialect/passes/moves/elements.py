"""Statements on elements, with stored operands that passes fold."""

from __future__ import annotations

import numpy as np

from conformance.dialect.passes.lines import Line, Lines


def elements(lines: Lines, x: Line) -> Line:
    """Apply a function to each element."""
    return lines.unary(x)


def sum_with_input(lines: Lines, x: Line) -> Line:
    """Combine with an input of the same shape."""
    return lines.binary(x, lines.given(x.shape, x.symbol))


def scaled(lines: Lines, x: Line) -> Line:
    """Combine with a stored tensor, some of whose axes are 1."""
    shape = lines.draw.broadcastable([1 if axis == x.symbol else extent for axis, extent in enumerate(x.shape)])
    return lines.binary(x, lines.stored(shape))


def neutral(lines: Lines, x: Line) -> Line:
    """Combine with the operation's neutral element, or with another."""
    op, value = lines.draw.pick([("mul", 1.0), ("add", 0.0), ("sub", 0.0), ("div", 1.0), ("mul", 0.0), ("mul", -1.0)])
    if lines.draw.flag():
        return lines.binary(x, value, op)
    shape = [1] * len(x.shape)
    return lines.binary(x, lines.stored(shape, np.full(shape, value, np.float32)), op)


def widened(lines: Lines, x: Line) -> Line | None:
    """Combine a value with one axis of 1 with a stored tensor of ones or zeros that is larger."""
    axes = [axis for axis in x.axes() if x.shape[axis] == 1]
    if not axes:
        return None
    shape = [lines.draw.integer(2, 5) if axis == axes[0] else 1 for axis in range(len(x.shape))]
    op, value = lines.draw.pick([("mul", 1.0), ("add", 0.0), ("sub", 0.0), ("max", -100.0)])
    larger = tuple(max(pair) for pair in zip(x.shape, shape, strict=True))
    stored = lines.stored(shape, np.full(shape, value, np.float32))
    return lines.step(op, larger, x.symbol, x=x, y=stored)


def chosen(lines: Lines, x: Line) -> Line:
    """Choose between two values by a stored condition that is the same everywhere."""
    shape = [1] * len(x.shape)
    sign = lines.stored(shape, np.full(shape, lines.draw.pick([1.0, -1.0]), np.float32))
    condition = lines.step("gt", shape, None, x=sign, y=0.0)
    other = lines.unary(x)
    return lines.step("select", x.shape, x.symbol, condition=condition, true_value=x, false_value=other)


def twice(lines: Lines, x: Line) -> Line:
    """Compute the same twice, and combine both."""
    op = lines.draw.pick(["relu", "tanh", "neg", "sigmoid"])
    return lines.binary(lines.unary(x, op), lines.unary(x, op))


def constant(lines: Lines, x: Line) -> Line | None:
    """Combine with a stored tensor that is turned, merged or sliced first."""
    if x.symbol is not None:
        return None
    variant, rank = lines.draw.integer(0, 2), len(x.shape)
    if variant == 0 and rank > 1:
        order = lines.draw.permutation(rank)
        stored = lines.stored([x.shape[order.index(axis)] for axis in range(rank)])
        return lines.binary(x, lines.transpose(stored, order))
    if variant == 1 and rank > 1:
        stored = lines.stored([x.shape[0] * x.shape[1], *x.shape[2:]])
        return lines.binary(x, lines.reshape(stored, 0, 1, x.shape[:2]))
    stored = lines.stored([x.shape[0] + 2, *x.shape[1:]])
    return lines.binary(x, lines.slice(stored, 0, 1, x.shape[0] + 1))
