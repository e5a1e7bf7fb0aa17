"""Random inputs of a model, distributed like its example; constant inputs get some spread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from t2n_core.check.sampling.limits import Limit, limit_of

Array: TypeAlias = NDArray[Any]
Extents: TypeAlias = tuple[int, ...]
_FEW = 16
"""Floats that are too few to show how they are distributed."""
_FAR = 0.1
"""Share of the floats of both signs that are drawn beyond the example's range."""
_FURTHER = 3.0
_FILLED = 0.15
"""Share of nonzero elements in a sparse input."""
_HALVINGS = 5
"""Steps of the bisection between an accepted and a refused index."""
_LARGEST_INTEGER = 1 << 15
"""Indices are not tried beyond it."""


class Distribution(Enum):
    """The distributions from which inputs are drawn; a model may be unable to run on some of them."""

    ALIKE = "alike"
    """Draws like the example; constants become normal floats, indices that the model accepts, masks of both values.

    Some floats of both signs are further out, since models clip and branch at values that an example seldom has.
    """
    NEAR = "near"
    """As ALIKE, with no float further out than the example's."""
    GENTLE = "gentle"
    """As NEAR, but masks are lengths (one value first, then the other), and floats of a constant keep its sign."""
    OWN = "own"
    """Values of the example only: constants stay constant."""
    SIGNED = "signed"
    """Floats are normal, about as large as the example's; if those have one sign, most of these have the other.

    Integers are drawn one by one.
    """
    WIDE = "wide"
    """As SIGNED, ten times as wide."""
    COARSE = "coarse"
    """Small integers, so that some are equal and some are 0."""
    SPECIAL = "special"
    """Floats with infinities and NaN among them; others as SIGNED."""
    SPARSE = "sparse"
    """As COARSE, and most of them 0; masks have few true values."""


_FREE = (Distribution.ALIKE, Distribution.NEAR)


class _Kind(Enum):
    """The kinds of inputs, guessed from their examples."""

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
    """The input and the axis that bound the lengths."""

    @cached_property
    def values(self) -> Array:
        """The distinct values, sorted."""
        return np.unique(self.example)

    @cached_property
    def finite(self) -> Array:
        """The finite values, sorted, in float64."""
        values = self.example[np.isfinite(self.example)].astype(np.float64)
        return np.sort(values)

    @property
    def has_one_sign(self) -> bool:
        """Return whether the values are floats of one sign, some of them finite."""
        values = self.finite if self.example.dtype.kind == "f" else np.empty(0)
        return bool(values.size) and not values[0] < 0 < values[-1]

    @cached_property
    def order(self) -> int:
        """1 or -1 if the last axis is sorted, 0 if it is not."""
        rows = self.example
        if self.kind is _Kind.LENGTHS and len(self.values) == 1:
            return -1
        if len(self.values) < 2 or rows.shape[-1] < (3 if rows.dtype.kind == "f" else 2):
            return 0
        earlier, later = rows[..., :-1], rows[..., 1:]
        return 1 if (earlier <= later).all() else -1 if (earlier >= later).all() else 0

    @cached_property
    def permutes(self) -> bool:
        """Return whether each row is a permutation of the positions along the last axis, other than the identity."""
        if self.kind is not _Kind.VALUES or self.example.dtype.kind not in "iu" or self.order or not self.example.ndim:
            return False
        return bool((np.sort(self.example, axis=-1) == np.arange(self.example.shape[-1])).all())


class Draws:
    """Random inputs of one model."""

    def __init__(self, examples: Sequence[Array], runs: Callable[[Sequence[Array]], bool]) -> None:
        """Take the example's arrays, and a function that returns whether the model runs with other arrays."""
        arrays = [np.asarray(array) for array in examples]
        self._inputs = [_input_of(position, arrays) for position in range(len(arrays))]
        self._runs = runs
        self._highest: dict[int, int] = {}
        self._limits: dict[int, Limit | None] = {}
        self._orders: dict[int, int] = {}
        self.has_drawn = False

    @property
    def has_one_sign(self) -> bool:
        """Return whether an input has distinct floats that all have the same sign."""
        return any(model_input.kind is _Kind.VALUES and model_input.has_one_sign for model_input in self._inputs)

    def draw(
        self, shapes: Sequence[Extents], rng: np.random.Generator, distribution: Distribution = Distribution.ALIKE
    ) -> list[Array]:
        """Return new arrays of these shapes, with the example's dtypes; floats are finite unless they are masks."""
        self.has_drawn = True
        arrays = [self._draw_one(position, shapes, rng, distribution) for position in range(len(self._inputs))]
        for position, sorted_by in self._sorters.items():
            arrays[position] = np.argsort(arrays[sorted_by], axis=-1, kind="stable").astype(arrays[position].dtype)
        return arrays

    @cached_property
    def _sorters(self) -> dict[int, int]:
        """Return the inputs that sort another input's elements, as the `sorter` of `searchsorted`."""
        examples = [model_input.example for model_input in self._inputs]
        return {
            position: other
            for position, model_input in enumerate(self._inputs)
            for other, values in enumerate(examples)
            if model_input.permutes and other != position and values.shape == model_input.example.shape
            if (np.diff(np.take_along_axis(values, model_input.example.astype(np.int64), -1), axis=-1) >= 0).all()
        }

    def _draw_one(
        self, position: int, shapes: Sequence[Extents], rng: np.random.Generator, distribution: Distribution
    ) -> Array:
        model_input, shape = self._inputs[position], tuple(shapes[position])
        dtype, is_own = model_input.example.dtype, distribution is Distribution.OWN
        if model_input.kind is _Kind.MASK and not (is_own and len(model_input.values) == 1):
            return _mask(model_input, shape, rng, distribution)
        if distribution in (Distribution.COARSE, Distribution.SPARSE) and model_input.kind in (
            _Kind.VALUES,
            _Kind.CONSTANT,
        ):
            drawn = rng.integers(0 if dtype.kind == "u" else -2, 3, shape)
            return (drawn if distribution is Distribution.COARSE else drawn * (rng.random(shape) < _FILLED)).astype(
                dtype
            )
        if model_input.kind is _Kind.EMPTY:
            return np.asarray(rng.standard_normal(shape) if dtype.kind == "f" else np.zeros(shape), dtype)
        if model_input.kind is _Kind.LENGTHS and model_input.bound is not None and not is_own:
            other, axis = model_input.bound
            return _sort(rng.integers(1, max(shapes[other][axis], 1) + 1, shape).astype(dtype), model_input.order)
        if model_input.permutes:
            return np.argsort(rng.random(shape), axis=-1).astype(dtype)
        limit = None if is_own else self._limit_of(position)
        if limit is not None:
            low, high = limit.ends(shapes)
            drawn = rng.integers(low, high + 1, shape)
            if drawn.size and rng.random() < 0.5:  # few random integers are the last index, or the full length
                drawn = np.asarray(drawn)
                drawn.flat[rng.integers(drawn.size)] = high
            return _sort(np.asarray(drawn, dtype), self._order(position))
        if model_input.kind is _Kind.INDICES and distribution is not Distribution.GENTLE and not is_own:
            ends = int(model_input.values[0]), self._highest_of(position)
            return rng.integers(min(0, *ends), max(0, *ends) + 1, shape).astype(dtype)
        if dtype.kind != "f":
            return _integers(model_input, shape, rng, permuted=distribution in (*_FREE, Distribution.GENTLE))
        return _floats(model_input, shape, rng, distribution)

    def describe(self, names: Sequence[str], signed: bool) -> dict[str, str]:
        """Return how each input is drawn if the model accepts all draws; `names` are the input names.

        `signed` says whether floats were drawn with a sign that the example's never have.
        """
        return {name: self._describe_input(position, names, signed) for position, name in enumerate(names)}

    def _describe_input(self, position: int, names: Sequence[str], signed: bool) -> str:
        model_input = self._inputs[position]
        if position in self._sorters:
            return f"the order of the elements of {names[self._sorters[position]]}"
        if model_input.permutes:
            return "permutations of the positions along its last axis"
        if model_input.kind in (_Kind.INDICES, _Kind.VALUES) and model_input.example.dtype.kind != "f":
            if (limit := self._limit_of(position)) is not None:
                return f"{limit.describe(names)}{', sorted' if self._order(position) else ''}"
            if model_input.kind is _Kind.INDICES:
                return f"integers from 0 to {self._highest_of(position)}, the largest that the model accepts"
            return f"the example's integers{', sorted' if model_input.order else ''}"
        if model_input.kind is _Kind.LENGTHS and model_input.bound is not None:
            words = Limit(1, *model_input.bound, is_index=False).describe(names)
            return f"{words}{', sorted' if model_input.order else ''}"
        if model_input.kind is _Kind.EMPTY:
            return "normal floats" if model_input.example.dtype.kind == "f" else "zeros"
        if model_input.kind is _Kind.CONSTANT:
            return "normal floats in place of a constant"
        if model_input.kind is _Kind.MASK:
            return "masks of both values"
        if not model_input.has_one_sign:
            return "floats like the example's"
        return f"floats like the example's, {'also' if signed else 'never'} of the other sign"

    def _limit_of(self, position: int) -> Limit | None:
        """Return the axis that bounds the integers of an input, if there is one."""
        model_input = self._inputs[position]
        if position not in self._limits:
            is_integer = model_input.kind in (_Kind.INDICES, _Kind.VALUES) and model_input.example.dtype.kind in "iu"
            examples = [each.example for each in self._inputs]
            self._limits[position] = limit_of(position, examples, self._runs) if is_integer else None
        return self._limits[position]

    def _order(self, position: int) -> int:
        """Return the order of bounded integers; if all are equal, they are sorted if the model requires it."""
        model_input, limit = self._inputs[position], self._limit_of(position)
        if (
            limit is None
            or model_input.example.ndim != 1
            or len(model_input.example) < 2
            or len(model_input.values) > 1
        ):
            return model_input.order
        if position not in self._orders:
            low, high = limit.ends([each.example.shape for each in self._inputs])
            rising = np.linspace(low, high, len(model_input.example)).astype(np.int64)
            falls = not self._takes(position, rising) and self._takes(position, rising[::-1])
            self._orders[position] = -1 if falls else 0
        return self._orders[position]

    def _takes(self, position: int, integers: Array) -> bool:
        """Return whether the model runs on its example with these integers in one input."""
        examples = [model_input.example for model_input in self._inputs]
        examples[position] = np.resize(integers.astype(examples[position].dtype), examples[position].shape)
        return self._runs(examples)

    def _highest_of(self, position: int) -> int:
        """Return the largest index that the model accepts in this input, or a slightly smaller one."""
        if position not in self._highest:
            example = self._inputs[position].example
            most = min(_LARGEST_INTEGER, int(np.iinfo(example.dtype).max))

            def takes(index: int) -> bool:
                return index <= most and self._takes(position, np.array([index, 0, index // 2]))

            highest = int(example.max())
            refused = max(1, highest)
            while takes(refused):
                highest, refused = refused, 4 * refused + 3
            for _ in range(_HALVINGS):
                middle = (highest + refused) // 2
                if highest < middle:
                    highest, refused = (middle, refused) if takes(middle) else (highest, middle)
            self._highest[position] = highest
        return self._highest[position]


def _input_of(position: int, examples: Sequence[Array]) -> _Input:
    example = examples[position]
    if not example.size:
        return _Input(example, _Kind.EMPTY)
    values = np.unique(example)
    if example.dtype.kind == "b" or (example.dtype.kind == "f" and len(values) == 2 < example.size):
        return _Input(example, _Kind.MASK)
    if example.dtype.kind == "f":
        return _Input(example, _Kind.CONSTANT if len(values) == 1 else _Kind.VALUES)
    bound = _bound_of(position, examples)
    if bound is not None:
        return _Input(example, _Kind.LENGTHS, bound)
    if example.ndim > 1 and set(values.tolist()) <= {0, 1} and values[-1] == 1:
        return _Input(example, _Kind.MASK)
    return _Input(example, _Kind.INDICES if len(values) == 1 else _Kind.VALUES)


def _bound_of(position: int, examples: Sequence[Array]) -> tuple[int, int] | None:
    """Return the input and axis whose extent is the largest of these integers, if they look like lengths of its rows.

    Lengths are a vector with one integer from 1 on for each row of an input that has at least two axes.
    """
    example = examples[position]
    if example.ndim != 1 or example.min() < 1:
        return None
    for index, other in enumerate(examples):
        if index == position or other.ndim < 2 or len(example) not in other.shape:
            continue
        rows = other.shape.index(len(example))
        for axis, extent in enumerate(other.shape):
            if axis != rows and extent == example.max():
                return index, axis
    return None


def _mask(model_input: _Input, shape: Extents, rng: np.random.Generator, distribution: Distribution) -> Array:
    """Return a mask whose rows hold both values if they have room for two; rows of a sparse mask may have only one."""
    example = model_input.example
    first = example.reshape(-1)[0]
    low, high = model_input.values if len(model_input.values) == 2 else (np.zeros_like(first), np.ones_like(first))
    columns = shape[-1] if shape else 0
    if columns < 2 or distribution is Distribution.SPARSE:
        share = _FILLED if distribution is Distribution.SPARSE else 0.5
        return np.asarray(np.where(rng.random(shape) < share, high, low), example.dtype)
    if distribution is Distribution.GENTLE:
        ends = rng.integers(1, columns, (*shape[:-1], 1))
        rest = high if first == low else low
        return np.asarray(np.where(np.arange(columns) < ends, first, rest), example.dtype)
    chosen = rng.random(shape) < 0.5
    places = rng.permuted(np.broadcast_to(np.arange(columns), shape), axis=-1)
    np.put_along_axis(chosen, places[..., :1], True, axis=-1)
    np.put_along_axis(chosen, places[..., 1:2], False, axis=-1)
    return np.asarray(np.where(chosen, high, low), example.dtype)


def _integers(model_input: _Input, shape: Extents, rng: np.random.Generator, *, permuted: bool) -> Array:
    """Return integers of the example; for the same shape, permuted along its axes, so that no row gets ties."""
    if permuted and shape == model_input.example.shape and not model_input.order:
        drawn = model_input.example
        for axis, extent in enumerate(shape):
            drawn = np.take(drawn, rng.permutation(extent), axis)
        return drawn
    return _sort(
        rng.choice(model_input.example.reshape(-1), size=shape).astype(model_input.example.dtype), model_input.order
    )


def _floats(model_input: _Input, shape: Extents, rng: np.random.Generator, distribution: Distribution) -> Array:
    finite, dtype = model_input.finite, model_input.example.dtype
    if not finite.size:
        return np.zeros(shape, dtype)
    if distribution is Distribution.SPECIAL:
        return rng.choice(np.array([-np.inf, np.inf, np.nan, 0.0, *finite[:_FEW]]), shape).astype(dtype)
    if distribution is Distribution.OWN and finite[0] == finite[-1]:
        drawn = np.full(shape, finite[0])
    elif distribution in (Distribution.SIGNED, Distribution.WIDE):
        scale = 10.0 if distribution is Distribution.WIDE else 1.0
        mean, deviation = finite.mean(), finite.std()
        if not finite[0] < 0 < finite[-1]:
            mean, deviation = -mean / 2, np.hypot(mean, deviation)
        drawn = mean + scale * (deviation or 1.0) * rng.standard_normal(shape)
    elif finite[0] == finite[-1]:
        drawn = _around(float(finite[0]), shape, rng, signed=finite.size > 1 and distribution in _FREE)
    elif finite.size < _FEW and finite[0] < 0 < finite[-1]:
        drawn = finite.mean() + finite.std() * rng.standard_normal(shape)
    else:
        drawn = np.interp(rng.random(shape) * (finite.size - 1), np.arange(finite.size), finite)
    if distribution is Distribution.ALIKE and finite[0] < 0 < finite[-1]:
        drawn = np.where(rng.random(shape) < _FAR, _FURTHER * drawn, drawn)
    biggest = float(np.finfo(dtype).max)
    return _sort(np.asarray(np.clip(drawn, -biggest, biggest), dtype), model_input.order)


def _around(constant: float, shape: Extents, rng: np.random.Generator, *, signed: bool) -> Array:
    """Return floats instead of a constant: normally distributed, or of the constant's sign."""
    if signed or not constant:
        return rng.standard_normal(shape)
    return constant * rng.uniform(0.5, 1.5, shape)


def _sort(drawn: Array, order: int) -> Array:
    if not order or not drawn.ndim:
        return drawn
    ascending = np.sort(drawn, axis=-1)
    return ascending if order > 0 else np.ascontiguousarray(ascending[..., ::-1])
