"""Passes that shrink tensors: shorter axes, fewer axes. No shapes are inferred: the oracle rejects invalid ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from t2n_core.nnef.reading.document import Argument, Assignment, FragmentText
from t2n_core.nnef.reading.parser import read_text
from t2n_core.reduce.program import Array, Program
from t2n_core.reduce.reduction import Reduction

_PLACES: Final = ("shape", "begin", "end", "repeats")
"""Arguments whose integers are extents, or positions on an axis."""
_BY_AXIS: Final = ("size", "stride", "dilation", "padding", "output_shape", "factor")
"""Arguments with an item for each axis."""
_RANKS: Final = 6
_WINDOWS: Final = ("first", "largest", "smallest")


def shorter_axes(state: Reduction) -> None:
    """Shrink extents: all multiples of one, everywhere, on one axis, of one tensor; always the longest first."""
    state.take_all(_shorter)


def _shorter(program: Program) -> Iterator[Program]:
    tensors = _tensors(program)
    extents = sorted({extent for array in tensors.values() for extent in array.shape if extent > 1}, reverse=True)
    for extent in extents:
        for smaller in sorted({1, 2, 3, 4, extent // 2, extent - 1}):
            if 1 <= smaller < extent:
                for shrink in _ways(program, extent, smaller):
                    for window in _WINDOWS:
                        changed = _resize(program, shrink, window)
                        if changed is not None:
                            yield from _with_numbers(changed, shrink)


@dataclass(frozen=True, slots=True)
class Shrink:
    """A way to shrink axes of one extent: of all tensors, of one tensor, or on one axis."""

    extent: int
    smaller: int
    axis: int | None = None
    tensor: str = ""
    multiples: bool = False
    """True if axes whose extent is a multiple shrink as well."""

    def __call__(self, tensor: str, axis: int, length: int) -> int:
        """Return the new length of an axis."""
        if self.axis not in (None, axis) or self.tensor not in ("", tensor):
            return length
        return self.number(length)

    def number(self, value: int) -> int:
        """Return the new value of an integer in the text."""
        if self.multiples and value and value % self.extent == 0:
            return value // self.extent * self.smaller
        return self.smaller if value == self.extent else value


def _ways(program: Program, extent: int, smaller: int) -> Iterator[Shrink]:
    """Yield the ways to shrink an extent, the broadest first."""
    yield Shrink(extent, smaller, multiples=True)
    yield Shrink(extent, smaller)
    for axis in range(_RANKS):
        yield Shrink(extent, smaller, axis)
    for tensor, array in _tensors(program).items():
        for axis, length in enumerate(array.shape):
            if length == extent:
                yield Shrink(extent, smaller, axis, tensor)


def _with_numbers(program: Program, shrink: Shrink) -> Iterator[Program]:
    """Yield the program with the integers of its text changed in the same way, and unchanged."""

    def change(_: Assignment, argument: Argument) -> Any:
        return _map(argument.value, shrink.number) if argument.name in _PLACES else argument.value

    changed = program.with_arguments(change)
    if shrink.multiples and program.fragments:
        yield replace(
            changed, fragments={n: _scale(fragment, shrink.number) for n, fragment in program.fragments.items()}
        )
    if changed.text() != program.text():
        yield changed
    yield program


def _scale(fragment: FragmentText, shrunk: Callable[[int], int]) -> FragmentText:
    """Return a fragment with the positions and extents in its body changed."""
    if fragment.body is None:
        return fragment
    body = [
        replace(
            assignment,
            arguments=tuple(
                Argument(a.name, _map(a.value, shrunk)) if a.name in _PLACES else a for a in assignment.arguments
            ),
        )
        for assignment in fragment.body
    ]
    return with_body(fragment, body)


def with_body(fragment: FragmentText, body: list[Assignment]) -> FragmentText:
    """Return a fragment with another body."""
    head = fragment.text.partition("{")[0]
    text = "\n".join([f"{head}{{", *(f"  {assignment.text()};" for assignment in body), "}"])
    return read_text(f"{text}\ngraph g() -> (o) {{}}").fragments[fragment.name]


def _map(value: Any, change: Callable[[int], int]) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return change(value)
    return type(value)(_map(item, change) for item in value) if type(value) in (list, tuple) else value


def _tensors(program: Program) -> dict[str, Array]:
    weights = {name: weight for name, weight in program.weights.items() if isinstance(weight, np.ndarray)}
    return {**program.inputs, **weights}


def _resize(program: Program, shrink: Shrink, window: str) -> Program | None:
    """Return the program with shorter tensors; None if none gets shorter, or the window makes no difference."""
    changed: dict[str, Array] = {}
    for name, array in _tensors(program).items():
        shape = tuple(shrink(name, axis, extent) for axis, extent in enumerate(array.shape))
        if shape != array.shape:
            if window != "first" and (array.dtype.kind != "f" or not array.size):
                return None
            changed[name] = _window(array, shape, window)
    return _with_tensors(program, changed) if changed else None


def _with_tensors(program: Program, changed: dict[str, Array]) -> Program:
    inputs = {name: changed.get(name, array) for name, array in program.inputs.items()}
    weights = {name: changed.get(name, weight) for name, weight in program.weights.items()}
    return replace(program, inputs=inputs, weights=weights)


def _window(array: Array, shape: tuple[int, ...], window: str) -> Array:
    """Return a part of an array: its beginning, or one around its largest or smallest element."""
    starts = [0] * array.ndim
    if window != "first":
        flat = int((array if window == "largest" else -array).argmax())
        places = np.unravel_index(flat, array.shape)
        both = zip(places, shape, array.shape, strict=True)
        starts = [min(max(0, int(position) - new + 1), old - new) for position, new, old in both]
    part = array[tuple(slice(start, start + new) for start, new in zip(starts, shape, strict=True))]
    return np.ascontiguousarray(part).reshape(shape)


def fewer_axes(state: Reduction) -> None:
    """Remove axes of extent 1: at one position from the front or the back, of all tensors of a rank or more."""
    state.take_all(_lower)


def _lower(program: Program) -> Iterator[Program]:
    tensors = _tensors(program)
    for rank in sorted({array.ndim for array in tensors.values()}, reverse=True):
        for axis in range(rank):
            for chosen in (list(tensors), *([name] for name in tensors)):
                ones = [n for n in chosen if tensors[n].ndim == rank and tensors[n].shape[axis] == 1]
                if ones and _lose_it(chosen, ones, tensors, rank):
                    squeezed = {name: tensors[name].squeeze(axis) for name in ones}
                    lower = _with_tensors(program, squeezed)
                    yield lower.with_arguments(_WithoutAxis(rank, axis))
                    yield lower


def _lose_it(chosen: list[str], ones: list[str], tensors: dict[str, Array], rank: int) -> bool:
    """Return whether all chosen tensors of a rank lose the axis."""
    return ones == [name for name in chosen if tensors[name].ndim == rank]


@dataclass(frozen=True, slots=True)
class _WithoutAxis:
    """The change of arguments after tensors of a rank lose an axis."""

    rank: int
    axis: int

    def __call__(self, _: Assignment, argument: Argument) -> Any:
        value = argument.value
        if argument.name == "axis" and isinstance(value, int):
            return value - (value > self.axis)
        if not isinstance(value, list):
            return value
        if argument.name == "axes" and all(isinstance(item, int) for item in value):
            return [item - (item > self.axis) for item in value if item != self.axis]
        if argument.name in ("shape", *_BY_AXIS) and len(value) == self.rank:
            return value[: self.axis] + value[self.axis + 1 :]
        return value
