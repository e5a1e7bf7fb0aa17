"""Random inputs of a model, drawn like its example; where the example has no spread, the draws have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Extents: TypeAlias = tuple[int, ...]
_FEW = 16
"""Floats that are too few to show how they are distributed."""
_FAR = 0.1
"""Share of the floats of both signs that are drawn further out than the example's."""
_FURTHER = 3.0
_FILLED = 0.15
"""Share of the numbers of a sparse input that are not 0."""
_LARGEST_INTEGER = 1 << 15
"""Integers that stand for indices are not tried beyond it."""


class Manner(Enum):
    """The ways to draw inputs; a model may be unable to run with some of them."""

    ALIKE = "alike"
    """Draws like the example; constants become normal floats, indices that the model takes, masks of both values.

    Of floats with both signs some are further out, since models clip and switch at numbers that an example seldom has.
    """
    NEAR = "near"
    """As ALIKE, with no float further out than the example's."""
    GENTLE = "gentle"
    """As NEAR, but masks are lengths (one value first, then the other), and floats of a constant keep its sign."""
    OWN = "own"
    """Values of the example alone: what is constant stays constant."""
    SIGNED = "signed"
    """Floats are normal, about as large as the example's; if those have one sign, most of these have the other.

    Integers are drawn one by one.
    """
    WIDE = "wide"
    """As SIGNED, ten times as wide."""
    COARSE = "coarse"
    """Small whole numbers, so that some are equal and some are 0."""
    SPECIAL = "special"
    """Floats with infinities and NaN among them; others as SIGNED."""
    SPARSE = "sparse"
    """As COARSE, and most of them 0; masks have few values that are true."""


_FREE = (Manner.ALIKE, Manner.NEAR)


class _Kind(Enum):
    """The kinds of inputs, as they seem by their examples."""

    EMPTY = "empty"
    MASK = "mask"
    LENGTHS = "lengths"
    INDICES = "indices"
    CONSTANT = "constant"
    VALUES = "values"


@dataclass(frozen=True)
class _Input:
    """One input of the example."""

    example: Array
    kind: _Kind
    bound: tuple[int, int] | None = None
    """The input and its axis that no length exceeds."""

    @cached_property
    def values(self) -> Array:
        """The different values, sorted."""
        return np.unique(self.example)

    @cached_property
    def finite(self) -> Array:
        """The finite values, sorted, in float64."""
        known = self.example[np.isfinite(self.example)].astype(np.float64)
        return np.sort(known)

    @cached_property
    def order(self) -> int:
        """1 or -1 where the last axis is sorted, and 0 where it is not."""
        rows = self.example
        if self.kind is _Kind.LENGTHS and len(self.values) == 1:
            return -1
        if len(self.values) < 2 or rows.shape[-1] < (3 if rows.dtype.kind == "f" else 2):
            return 0
        earlier, later = rows[..., :-1], rows[..., 1:]
        return 1 if (earlier <= later).all() else -1 if (earlier >= later).all() else 0


class Draws:
    """Random inputs of one model."""

    def __init__(self, examples: Sequence[Array], runs: Callable[[Sequence[Array]], bool]) -> None:
        """Take the example's arrays, and a function that says whether the model runs with other arrays."""
        arrays = [np.asarray(array) for array in examples]
        self._inputs = [_input_of(place, arrays) for place in range(len(arrays))]
        self._runs = runs
        self._highest: dict[int, int] = {}

    @property
    def has_one_sign(self) -> bool:
        """Return whether an input has floats that differ and are all of one sign."""
        floats = [one.finite for one in self._inputs if one.kind is _Kind.VALUES and one.example.dtype.kind == "f"]
        return any(known.size > 0 and not known[0] < 0 < known[-1] for known in floats)

    def draw(self, shapes: Sequence[Extents], rng: np.random.Generator, manner: Manner = Manner.ALIKE) -> list[Array]:
        """Return new arrays of these shapes, with the example's dtypes; floats are finite unless they are masks."""
        return [self._drawn(place, shapes, rng, manner) for place in range(len(self._inputs))]

    def _drawn(self, place: int, shapes: Sequence[Extents], rng: np.random.Generator, manner: Manner) -> Array:
        one, shape = self._inputs[place], tuple(shapes[place])
        dtype, own = one.example.dtype, manner is Manner.OWN
        if one.kind is _Kind.MASK and not (own and len(one.values) == 1):
            return _mask(one, shape, rng, manner)
        if manner in (Manner.COARSE, Manner.SPARSE) and one.kind in (_Kind.VALUES, _Kind.CONSTANT):
            drawn = rng.integers(0 if dtype.kind == "u" else -2, 3, shape)
            return (drawn if manner is Manner.COARSE else drawn * (rng.random(shape) < _FILLED)).astype(dtype)
        if one.kind is _Kind.EMPTY:
            return np.asarray(rng.standard_normal(shape) if dtype.kind == "f" else np.zeros(shape), dtype)
        if one.kind is _Kind.LENGTHS and one.bound is not None and not own:
            other, axis = one.bound
            return _sorted(rng.integers(1, max(shapes[other][axis], 1) + 1, shape).astype(dtype), one.order)
        if one.kind is _Kind.INDICES and manner is not Manner.GENTLE and not own:
            ends = int(one.values[0]), self._highest_of(place)
            return rng.integers(min(0, *ends), max(0, *ends) + 1, shape).astype(dtype)
        if dtype.kind != "f":
            return _integers(one, shape, rng, permuted=manner in (*_FREE, Manner.GENTLE))
        return _floats(one, shape, rng, manner)

    def _highest_of(self, place: int) -> int:
        """Return the largest index that the model takes in this input, up to a factor of 4."""
        if place not in self._highest:
            examples = [one.example for one in self._inputs]
            example = examples[place]
            most = min(_LARGEST_INTEGER, int(np.iinfo(example.dtype).max))
            highest = int(example.max())
            tried = max(1, highest)
            while tried <= most:
                array = np.resize(np.array([tried, 0, tried // 2], example.dtype), example.shape)
                if not self._runs([*examples[:place], array, *examples[place + 1 :]]):
                    break
                highest, tried = tried, 4 * tried + 3
            self._highest[place] = highest
        return self._highest[place]


def _input_of(place: int, examples: Sequence[Array]) -> _Input:
    example = examples[place]
    if not example.size:
        return _Input(example, _Kind.EMPTY)
    values = np.unique(example)
    if example.dtype.kind == "b" or (example.dtype.kind == "f" and len(values) == 2 < example.size):
        return _Input(example, _Kind.MASK)
    if example.dtype.kind == "f":
        return _Input(example, _Kind.CONSTANT if len(values) == 1 else _Kind.VALUES)
    bound = _bound_of(place, examples)
    if bound is not None:
        return _Input(example, _Kind.LENGTHS, bound)
    if example.ndim > 1 and set(values.tolist()) <= {0, 1} and values[-1] == 1:
        return _Input(example, _Kind.MASK)
    return _Input(example, _Kind.INDICES if len(values) == 1 else _Kind.VALUES)


def _bound_of(place: int, examples: Sequence[Array]) -> tuple[int, int] | None:
    """Return the input and axis whose extent is the largest of these integers, if they look like lengths of its rows.

    Lengths are a vector with one number from 1 on for each row of an input that has at least two axes.
    """
    example = examples[place]
    if example.ndim != 1 or example.min() < 1:
        return None
    for index, other in enumerate(examples):
        if index == place or other.ndim < 2 or len(example) not in other.shape:
            continue
        rows = other.shape.index(len(example))
        for axis, extent in enumerate(other.shape):
            if axis != rows and extent == example.max():
                return index, axis
    return None


def _mask(one: _Input, shape: Extents, rng: np.random.Generator, manner: Manner) -> Array:
    """Return a mask whose rows hold both values, if they have room for two; a sparse one may have rows without."""
    example = one.example
    first = example.reshape(-1)[0]
    low, high = one.values if len(one.values) == 2 else (np.zeros_like(first), np.ones_like(first))
    columns = shape[-1] if shape else 0
    if columns < 2 or manner is Manner.SPARSE:
        share = _FILLED if manner is Manner.SPARSE else 0.5
        return np.asarray(np.where(rng.random(shape) < share, high, low), example.dtype)
    if manner is Manner.GENTLE:
        ends = rng.integers(1, columns, (*shape[:-1], 1))
        rest = high if first == low else low
        return np.asarray(np.where(np.arange(columns) < ends, first, rest), example.dtype)
    chosen = rng.random(shape) < 0.5
    places = rng.permuted(np.broadcast_to(np.arange(columns), shape), axis=-1)
    np.put_along_axis(chosen, places[..., :1], True, axis=-1)
    np.put_along_axis(chosen, places[..., 1:2], False, axis=-1)
    return np.asarray(np.where(chosen, high, low), example.dtype)


def _integers(one: _Input, shape: Extents, rng: np.random.Generator, *, permuted: bool) -> Array:
    """Return integers of the example: its axes permuted where the shape is the same, so that no row gets ties."""
    if permuted and shape == one.example.shape and not one.order:
        drawn = one.example
        for axis, extent in enumerate(shape):
            drawn = np.take(drawn, rng.permutation(extent), axis)
        return drawn
    return _sorted(rng.choice(one.example.reshape(-1), size=shape).astype(one.example.dtype), one.order)


def _floats(one: _Input, shape: Extents, rng: np.random.Generator, manner: Manner) -> Array:
    known, dtype = one.finite, one.example.dtype
    if not known.size:
        return np.zeros(shape, dtype)
    if manner is Manner.SPECIAL:
        return rng.choice(np.array([-np.inf, np.inf, np.nan, 0.0, *known[:_FEW]]), shape).astype(dtype)
    if manner is Manner.OWN and known[0] == known[-1]:
        drawn = np.full(shape, known[0])
    elif manner in (Manner.SIGNED, Manner.WIDE):
        scale = 10.0 if manner is Manner.WIDE else 1.0
        mean, deviation = known.mean(), known.std()
        if not known[0] < 0 < known[-1]:
            mean, deviation = -mean / 2, np.hypot(mean, deviation)
        drawn = mean + scale * (deviation or 1.0) * rng.standard_normal(shape)
    elif known[0] == known[-1]:
        drawn = _around(float(known[0]), shape, rng, signed=known.size > 1 and manner in _FREE)
    elif known.size < _FEW and known[0] < 0 < known[-1]:
        drawn = known.mean() + known.std() * rng.standard_normal(shape)
    else:
        drawn = np.interp(rng.random(shape) * (known.size - 1), np.arange(known.size), known)
    if manner is Manner.ALIKE and known[0] < 0 < known[-1]:
        drawn = np.where(rng.random(shape) < _FAR, _FURTHER * drawn, drawn)
    biggest = float(np.finfo(dtype).max)
    return _sorted(np.asarray(np.clip(drawn, -biggest, biggest), dtype), one.order)


def _around(constant: float, shape: Extents, rng: np.random.Generator, *, signed: bool) -> Array:
    """Return floats in place of a constant: normal ones, or such as have its sign."""
    if signed or not constant:
        return rng.standard_normal(shape)
    return constant * rng.uniform(0.5, 1.5, shape)


def _sorted(drawn: Array, order: int) -> Array:
    if not order or not drawn.ndim:
        return drawn
    ascending = np.sort(drawn, axis=-1)
    return ascending if order > 0 else np.ascontiguousarray(ascending[..., ::-1])


__all__ = ["Draws", "Manner"]
