"""Draws of shapes, values and attributes from a seed."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import Any, Final, TypeVar

import numpy as np

from t2n_core.dialect.arrays import DATA_TYPES, Array

T = TypeVar("T")

SPECIAL: Final = (0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1.0, -1.0, math.inf, -math.inf, math.nan, 100.0, -100.0, 1e-30)
"""Floats at which definitions change: zeros, halves, infinities, NaN, and what a naive formula overflows at."""


class Draw:
    """The random values of one case, which depend only on the operator and the number of the case."""

    def __init__(self, op: str, number: int) -> None:
        self.op = op
        self.number = number
        self._random = np.random.default_rng([zlib.crc32(op.encode()), number])

    def integer(self, low: int, high: int) -> int:
        """Return an integer from `low` to `high`, both included."""
        return int(self._random.integers(low, high + 1))

    def pick(self, choices: Sequence[T]) -> T:
        """Return one of the choices."""
        return choices[self.integer(0, len(choices) - 1)]

    def turn(self, choices: Sequence[T]) -> T:
        """Return the choice whose turn it is: cases of successive numbers take successive ones."""
        return choices[self.number % len(choices)]

    def flag(self) -> bool:
        """Return True or False."""
        return bool(self.integer(0, 1))

    def number_of(self, low: float, high: float) -> float:
        """Return a float with two decimals."""
        return round(float(self._random.uniform(low, high)), 2)

    def shape(self, rank: int, low: int = 1, high: int = 6) -> list[int]:
        """Return extents that all differ, as far as the range allows."""
        choices = np.arange(low, high + 1)
        return [int(extent) for extent in self._random.choice(choices, size=rank, replace=rank > len(choices))]

    def floats(self, shape: Sequence[int], kind: str = "f32", scale: float = 2.0) -> Array:
        """Return signed floats."""
        return np.asarray(self._random.normal(0.0, scale, list(shape)), dtype=DATA_TYPES[kind])

    def with_special(self, shape: Sequence[int], kind: str = "f32", special: Sequence[float] = SPECIAL) -> Array:
        """Return signed floats, a third of them special values."""
        values = np.asarray(self._random.normal(0.0, 3.0, list(shape)))
        chosen = self._random.choice(np.asarray(special), size=values.shape)
        mixed = np.where(self._random.random(values.shape) < 1 / 3, chosen, values)
        with np.errstate(over="ignore"):
            return np.asarray(mixed, dtype=DATA_TYPES[kind])

    def ties(self, shape: Sequence[int], kind: str = "f32") -> Array:
        """Return few different values, so that many are equal."""
        return np.asarray(self._random.integers(-2, 3, list(shape)), dtype=DATA_TYPES[kind])

    def integers(
        self, shape: Sequence[int], kind: str = "i64", low: int | None = None, high: int | None = None
    ) -> Array:
        """Return integers from `low` to, with, `high`; of the whole range of the type where a bound is missing."""
        bounds = np.iinfo(kind.replace("i", "int").replace("u", "uint"))
        least, most = bounds.min if low is None else low, bounds.max if high is None else high
        values = self._random.integers(least, most, list(shape), dtype=DATA_TYPES[kind], endpoint=True)
        return np.asarray(values, dtype=DATA_TYPES[kind])

    def flags(self, shape: Sequence[int]) -> Array:
        """Return booleans."""
        return np.asarray(self._random.random(list(shape)) < 0.5)

    def indices(self, shape: Sequence[int], extent: int, kind: str = "i64", negative: bool = True) -> Array:
        """Return indices of an axis, some counted from its end."""
        return self.integers(shape, kind, -extent if negative else 0, extent - 1)

    def permutation(self, count: int) -> list[int]:
        """Return the integers below `count` in some order."""
        return [int(index) for index in self._random.permutation(count)]

    def broadcastable(self, shape: Sequence[int]) -> list[int]:
        """Return a shape with some extents 1."""
        return [1 if self.integer(0, 3) == 0 else extent for extent in shape]


def floating(draw: Draw) -> str:
    """Return the name of a floating type: mostly float32."""
    return draw.turn(["f32", "f32", "f32", "f16"])


def arguments(**values: Any) -> dict[str, Any]:
    """Return the arguments that are not None."""
    return {name: value for name, value in values.items() if value is not None}
