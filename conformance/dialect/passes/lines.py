"""A program that is drawn line by line: each method adds one statement and returns the value that it computes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from conformance.dialect.passes.program import Name, Program, Step
from t2n_core.dialect.arrays import Array
from t2n_core.dialect.cases.draw import Draw

UNARY: Final = ("relu", "tanh", "neg", "abs", "sigmoid", "sqr")
BINARY: Final = ("add", "mul", "sub", "max")


@dataclass(frozen=True)
class Line:
    """A value of the program: its name, its shape, and the axis that is a symbol in the graph, or None."""

    name: str
    shape: tuple[int, ...]
    symbol: int | None = None

    def axes(self) -> list[int]:
        """Return the axes of a known extent."""
        return [axis for axis in range(len(self.shape)) if axis != self.symbol]


class Lines:
    """The statements of a program, and the values that are there."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.values: list[Line] = []
        """The values that are computed or given, in order."""
        self._inputs: dict[str, Array] = {}
        self._stored: dict[str, Array] = {}
        self._dynamic: dict[str, int] = {}
        self._bodies: dict[str, str] = {}
        self.steps: list[Step] = []

    def given(self, shape: Sequence[int], symbol: int | None = None) -> Line:
        """Add an input."""
        name = f"in_{len(self._inputs)}"
        self._inputs[name] = self.draw.floats(shape)
        if symbol is not None:
            self._dynamic[name] = symbol
        return self._kept(Line(name, tuple(shape), symbol))

    def stored(self, shape: Sequence[int], array: Array | None = None) -> Line:
        """Add a stored tensor, of random values if none are given."""
        name = f"w_{len(self._stored)}"
        self._stored[name] = self.draw.floats(shape) if array is None else array
        return Line(name, tuple(shape))

    def step(self, op: str, shape: Sequence[int], symbol: int | None = None, /, **arguments: Any) -> Line:
        """Add a statement of one result of a shape; arguments that are lines are read."""
        line = self._kept(Line(f"v_{len(self.steps)}", tuple(shape), symbol))
        self.steps.append(Step(op, {name: _named(item) for name, item in arguments.items()}, (line.name,)))
        return line

    def _kept(self, line: Line) -> Line:
        self.values.append(line)
        return line

    # ------------------------------------------------------------------------------------------------------ elements
    def unary(self, x: Line, op: str = "") -> Line:
        return self.step(op or self.draw.pick(UNARY), x.shape, x.symbol, x=x)

    def binary(self, x: Line, y: Line | float, op: str = "") -> Line:
        return self.step(op or self.draw.pick(BINARY), x.shape, x.symbol, x=x, y=y)

    # ---------------------------------------------------------------------------------------------------------- axes
    def slice(self, x: Line, axis: int, begin: int, end: int) -> Line:
        shape = (*x.shape[:axis], end - begin, *x.shape[axis + 1 :])
        return self.step("slice", shape, x.symbol, input=x, axes=[axis], begin=[begin], end=[end], stride=[1])

    def concat(self, values: Sequence[Line], axis: int) -> Line:
        first = values[0]
        shape = (*first.shape[:axis], sum(value.shape[axis] for value in values), *first.shape[axis + 1 :])
        return self.step("concat", shape, first.symbol, values=list(values), axis=axis)

    def pad(self, x: Line, axis: int, before: int, after: int) -> Line:
        padding = [(before, after) if at == axis else (0, 0) for at in range(len(x.shape))]
        shape = (*x.shape[:axis], x.shape[axis] + before + after, *x.shape[axis + 1 :])
        return self.step("pad", shape, x.symbol, input=x, padding=padding, border="constant", value=0.0)

    def transpose(self, x: Line, order: Sequence[int]) -> Line:
        symbol = None if x.symbol is None else list(order).index(x.symbol)
        return self.step("transpose", [x.shape[axis] for axis in order], symbol, input=x, axes=list(order))

    def reshape(self, x: Line, start: int, count: int, extents: Sequence[int]) -> Line:
        """Reshape some static axes to others with the same number of elements."""
        assert math.prod(x.shape[start : start + count]) == math.prod(extents)
        moved = x.symbol is not None and x.symbol >= start + count
        symbol = (x.symbol or 0) + len(extents) - count if moved else x.symbol
        shape = (*x.shape[:start], *extents, *x.shape[start + count :])
        arguments = {"shape": list(extents), "axis_start": start, "axis_count": count}
        return self.step("reshape", shape, symbol, input=x, **arguments)

    def unsqueeze(self, x: Line, axis: int) -> Line:
        symbol = x.symbol + 1 if x.symbol is not None and x.symbol >= axis else x.symbol
        return self.step("unsqueeze", (*x.shape[:axis], 1, *x.shape[axis:]), symbol, input=x, axes=[axis])

    def squeeze(self, x: Line, axis: int) -> Line:
        symbol = x.symbol - 1 if x.symbol is not None and x.symbol > axis else x.symbol
        return self.step("squeeze", (*x.shape[:axis], *x.shape[axis + 1 :]), symbol, input=x, axes=[axis])

    def reduce(self, x: Line, axis: int, op: str) -> Line:
        return self.step(op, (*x.shape[:axis], 1, *x.shape[axis + 1 :]), x.symbol, input=x, axes=[axis])

    # ------------------------------------------------------------------------------------------------------ products
    def matmul(self, a: Line, b: Line, *, turn_a: bool = False, turn_b: bool = False) -> Line:
        rows, columns = a.shape[-1 if turn_a else -2], b.shape[-2 if turn_b else -1]
        at = len(a.shape)
        symbol = a.symbol if a.symbol is None or a.symbol < at - 2 or not turn_a else 2 * at - 3 - a.symbol
        shape = (*a.shape[:-2], rows, columns)
        return self.step("matmul", shape, symbol, A=a, B=b, transposeA=turn_a, transposeB=turn_b)

    def conv(self, x: Line, taps: Line, *, groups: int = 1, stride: int = 1) -> Line:
        """Add a convolution over one axis, without padding."""
        extent = (x.shape[2] - taps.shape[2]) // stride + 1
        arguments = {"bias": 0.0, "border": "constant", "padding": [(0, 0)], "stride": [stride], "dilation": [1]}
        return self.step(
            "conv", (x.shape[0], taps.shape[0], extent), x.symbol, input=x, filter=taps, **arguments, groups=groups
        )

    # --------------------------------------------------------------------------------------------------------- loops
    def scan(self, x: Line, axis: int, chunk: int, body: str, full: Sequence[Line]) -> Line:
        """Add a loop over an axis, whose body computes `new` and `row`; return its sequence."""
        at = len(self.steps)
        self._bodies[f"body_{at}"] = _fragment(f"body_{at}", len(full), body)
        shape = (*x.shape[:axis], abs(chunk), *x.shape[axis + 1 :])
        symbol = None if x.symbol == axis else x.symbol
        old = self.stored(shape) if symbol is None else self.given(shape, symbol)
        sequence = self._kept(Line(f"v_{at}", x.shape, x.symbol))
        last = self._kept(Line(f"last_{at}", shape, symbol))
        arguments = {
            "body": f"body_{at}",
            "scan": [("chunk", _named(x), axis, chunk)],
            "full": [(f"w_{number}", _named(line)) for number, line in enumerate(full)],
            "state": [("old", _named(old), "new")],
            "output": [("row", "full", axis, chunk), ("new", "last", axis, 1)],
            "skip": 0,
        }
        self.steps.append(Step("tract_core_scan", arguments, (sequence.name, last.name), is_list=True))
        return sequence

    def program(self, outputs: Sequence[str]) -> Program:
        """Return the program with these outputs."""
        fragments = "\n".join(self._bodies.values())
        shapes = {line.name: line.shape for line in self.values}
        shapes |= {name: array.shape for name, array in self._stored.items()}
        tables = self._inputs, self._stored, tuple(self.steps), tuple(outputs), shapes, self._dynamic
        return Program(self.draw.op, self.draw.number, *tables, fragments)


def _named(item: Any) -> Any:
    if isinstance(item, Line):
        return Name(item.name)
    return [_named(element) for element in item] if isinstance(item, list) else item


def _fragment(name: str, full: int, body: str) -> str:
    operands = "".join(f", w_{number}: tensor<scalar>" for number in range(full))
    head = f"fragment {name}( chunk: tensor<scalar>, old: tensor<scalar>{operands} )"
    return f"{head}\n-> ( new: tensor<scalar>, row: tensor<scalar> )\n{{\n    {body}\n}}\n"
