"""The ratio of an output to its error, as one value for all elements."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(slots=True)
class SquareSum:
    """A sum of squares, kept as `largest² · total` so that extreme values neither overflow nor vanish."""

    largest: float = 0.0
    """The largest absolute value so far."""
    total: float = 0.0
    """The sum of the squares of all values, each divided by the largest."""

    def add(self, values: NDArray[np.float64]) -> None:
        """Add the squares of finite values."""
        largest = float(np.abs(values).max(initial=0.0))
        if largest > self.largest:
            self.total *= (self.largest / largest) ** 2
            self.largest = largest
        if largest:
            parts = values / self.largest
            self.total += float(np.dot(parts, parts))

    @property
    def decibels(self) -> float:
        """Return `10 log10` of the sum, `-inf` for zero."""
        return 20 * math.log10(self.largest) + 10 * math.log10(self.total) if self.largest else -math.inf


@dataclass(slots=True)
class Sqnr:
    """The signal-to-quantisation-noise ratio of floats, gathered over chunks."""

    signal: SquareSum = field(default_factory=SquareSum)
    noise: SquareSum = field(default_factory=SquareSum)
    defined: bool = True
    """False once a value or a difference is NaN or infinite."""

    def add(self, expected: NDArray[np.float64], gap: NDArray[np.float64]) -> None:
        """Add a chunk of finite expected values, and their absolute differences from the actual ones."""
        if self.defined:
            self.signal.add(expected)
            self.noise.add(gap)

    @property
    def decibels(self) -> float | None:
        """Return `10 log10(sum expected² / sum (expected - actual)²)`, None if it is not defined.

        It is infinite if all elements are equal, and `-inf` if all expected ones are zero and some actual one is not.
        """
        if not self.defined:
            return None
        return self.signal.decibels - self.noise.decibels if self.noise.largest else math.inf
