"""Count the elements of an output that are outside its tolerance, and gather the figures of a report about them.

Floats are compared in float64. Integers and booleans have no rounding error: they must be equal at every level.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t2n_core.parity.tolerance import Bounds, TractCheckTolerance

Array = NDArray[Any]
_CHUNK = 1 << 16
"""Elements compared at a time: the float64 copies stay in the processor's cache, and memory does not grow."""


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


@dataclass(slots=True)
class Figures:
    """Figures that no verdict depends on, gathered in one pass over the chunks."""

    size: int
    """Elements in all chunks."""
    wanted: Bounds
    """The bounds in whose units the worst element is the worst."""
    mean_abs: float = 0.0
    max_rel: float = 0.0
    required_rtol: float = 0.0
    max_ulp: int | None = None
    sqnr: Sqnr = field(default_factory=Sqnr)
    worst_at: int | None = None
    worst_excess: float = 0.0

    def note_worst(self, at: int, excess: float) -> None:
        if self.worst_at is None or excess > self.worst_excess:
            self.worst_at, self.worst_excess = at, excess

    def note_broken(self, at: int) -> None:
        """Note an element that no tolerance covers."""
        self.mean_abs = self.required_rtol = math.inf
        self.note_worst(at, math.inf)

    def note_gaps(self, gap: Array, a: Array, b: Array) -> None:
        """Note the differences, none of which is 0, of float64 values."""
        self.mean_abs += float((gap / self.size).sum())  # a sum that is divided later may overflow
        with np.errstate(all="ignore"):
            to_actual = gap / np.abs(b)
            to_expected = gap / np.abs(a)
        self.required_rtol = max(self.required_rtol, float(to_actual.max()))
        of_numbers = to_expected[a != 0]
        if of_numbers.size:
            self.max_rel = max(self.max_rel, float(of_numbers.max()))

    def note_excess(self, start: int, positions: Array, gap: Array, b: Array) -> None:
        """Note the element of a chunk, among `positions`, whose difference is largest in units of the bounds."""
        bounds = self.wanted
        with np.errstate(all="ignore"):
            excess = gap / (bounds.atol + bounds.rtol * np.abs(b)) if bounds.atol or bounds.rtol else gap
        at = int(excess.argmax())
        self.note_worst(start + int(positions[at]), float(excess[at]))


@dataclass(slots=True)
class Tally:
    """The counts that decide whether an output passes, over the chunks seen so far."""

    size: int
    """Elements in all chunks."""
    required: TractCheckTolerance
    ladder: Mapping[TractCheckTolerance, Bounds]
    """The bounds of the levels to count for, tightest first; the required level is among them if it decides."""
    own: Bounds | None = None
    """The user's own tolerance, which decides instead of the required level."""
    figures: Figures | None = None
    """The figures to gather besides; None if only the verdict is asked for."""
    beyond: int = 0
    """Elements outside the user's own tolerance."""
    wrong: dict[TractCheckTolerance, int] = field(init=False)
    max_abs: float = 0.0
    nan_mismatches: int = 0
    inf_mismatches: int = 0

    def __post_init__(self) -> None:
        self.wrong = dict.fromkeys(self.ladder, 0)

    @property
    def passes(self) -> bool:
        """Return whether the elements seen so far are within the requirement; once false, it stays false."""
        if self.nan_mismatches or self.inf_mismatches:
            return False
        return not self.beyond if self.own is not None else self.holds(self.required)

    def holds(self, level: TractCheckTolerance) -> bool:
        """Return whether no more elements are outside a level than it allows."""
        return self.share_outside(level) <= self.ladder[level].outliers

    def share_outside(self, level: TractCheckTolerance) -> float:
        """Return the share of elements outside a level."""
        return self.wrong[level] / self.size if self.size else 0.0

    @property
    def outside(self) -> float:
        """Return the share of elements outside the requirement."""
        if self.own is None:
            return self.share_outside(self.required)
        return self.beyond / self.size if self.size else 0.0

    def count(self, expected: Array, actual: Array, *, until_failure: bool = False) -> Tally:
        """Add the elements of two flat arrays of equal size, and return this tally.

        With `until_failure` the chunk that decides against a pass is the last.
        """
        integral = expected.dtype.kind in "biu" and actual.dtype.kind in "biu"
        for start, x, y in _chunks(expected, actual):
            if integral:
                _add_integers(self, start, x, y)
            else:
                _add_floats(self, start, x, y)
            if until_failure and not self.passes:
                break
        return self


def _chunks(a: Array, b: Array) -> Iterator[tuple[int, Array, Array]]:
    for start in range(0, a.size, _CHUNK):
        yield start, a[start : start + _CHUNK], b[start : start + _CHUNK]


def _add_integers(tally: Tally, start: int, x: Array, y: Array) -> None:
    differ = np.flatnonzero(x != y)
    if not differ.size:
        return
    for level in tally.ladder:
        tally.wrong[level] += differ.size
    x, y = x[differ], y[differ]
    # Two's complement wraps, so the unsigned difference is exact over the whole range of 64 bits.
    ux, uy = x.astype(np.uint64), y.astype(np.uint64)
    distance = np.where(x > y, ux - uy, uy - ux)
    at = int(distance.argmax())
    biggest = int(distance[at])
    tally.max_abs = max(tally.max_abs, biggest)
    user_bounds, figures = tally.own, tally.figures
    if user_bounds is None and figures is None:
        return
    steps, size = distance.astype(np.float64), y.astype(np.float64)
    if user_bounds is not None:
        tally.beyond += int(np.count_nonzero(steps > user_bounds.atol + user_bounds.rtol * np.abs(size)))
    if figures is not None:
        figures.note_worst(start + int(differ[at]), biggest)
        figures.note_gaps(steps, x.astype(np.float64), size)


def _add_floats(tally: Tally, start: int, x: Array, y: Array) -> None:
    figures = tally.figures
    with np.errstate(all="ignore"):
        a, b = x.astype(np.float64), y.astype(np.float64)
        gap = np.abs(a - b)
    finite = bool(np.isfinite(gap).all())
    if figures is not None:
        figures.sqnr.defined &= finite
        figures.sqnr.add(a, gap)
    if finite:
        indices = np.flatnonzero(gap)
    else:
        _add_special(tally, start, a, b)
        # A float64 difference can overflow although both sides are finite; its gap is then infinite.
        indices = np.flatnonzero(np.isfinite(a) & np.isfinite(b) & (a != b))
    if not indices.size:
        return
    if indices.size < gap.size:
        gap, b = gap[indices], b[indices]
        if figures is not None:
            a, x, y = a[indices], x[indices], y[indices]
    tally.max_abs = max(tally.max_abs, float(gap.max()))
    if figures is not None:
        figures.note_excess(start, indices, gap, b)
        figures.note_gaps(gap, a, b)
        if figures.max_ulp is not None:
            figures.max_ulp = max(figures.max_ulp, _ulp_distance(x, y))
    size, user_bounds = np.abs(b), tally.own
    if user_bounds is not None:
        tally.beyond += int(np.count_nonzero(gap > user_bounds.atol + user_bounds.rtol * size))
    # Each level contains the one before, so only elements that failed there are compared again.
    for level, bounds in tally.ladder.items():
        beyond = gap > bounds.atol + bounds.rtol * size
        count = int(np.count_nonzero(beyond))
        tally.wrong[level] += count
        if not count:
            break
        if count < gap.size:
            gap, size = gap[beyond], size[beyond]


def _add_special(tally: Tally, start: int, a: Array, b: Array) -> None:
    nan_a, nan_b = np.isnan(a), np.isnan(b)
    nan_differ = nan_a ^ nan_b
    inf_differ = (np.isinf(a) | np.isinf(b)) & ~nan_a & ~nan_b & (a != b)
    tally.nan_mismatches += int(np.count_nonzero(nan_differ))
    tally.inf_mismatches += int(np.count_nonzero(inf_differ))
    broken = np.flatnonzero(nan_differ | inf_differ)
    if not broken.size:
        return
    for level in tally.ladder:
        tally.wrong[level] += broken.size
    tally.max_abs = math.inf
    if tally.figures is not None:
        tally.figures.note_broken(start + int(broken[0]))


def _ulp_distance(x: Array, y: Array) -> int:
    """Return the largest number of representable values between two finite arrays of one float dtype."""
    p, q = _order_keys(x), _order_keys(y)
    low, high = np.minimum(p, q), np.maximum(p, q)
    return int((high.view(np.uint64) - low.view(np.uint64)).max())


def _order_keys(values: Array) -> NDArray[np.int64]:
    """Return the bits of floats as integers in the order of the values; both zeros are 0."""
    bits = values.view(f"i{values.dtype.itemsize}")
    lowest = np.iinfo(bits.dtype).min
    return np.where(bits < 0, lowest - bits, bits).astype(np.int64)
