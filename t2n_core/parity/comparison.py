"""Compare an output of an engine with that of PyTorch, element by element.

Stricter than tract where tract's formula has gaps: another dtype or shape, an infinity against a finite value or of the
other sign, and a NaN against a number fail at every level. Floats are compared in float64. Integers and booleans have
no rounding error: they must be equal at every level, and only the outliers of the loosest levels apply to them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from t2n_core.parity.judging.judgement import DEFAULT_CRITERIA, Judgement
from t2n_core.parity.noise import Sqnr
from t2n_core.parity.tolerance import LEVELS, Bounds, TractCheckTolerance, bounds_of

Array = NDArray[Any]
Scalar = bool | int | float
_CHUNK = 1 << 16
"""Elements compared at a time: the float64 copies stay in the processor's cache, and memory does not grow."""


@dataclass(frozen=True, slots=True)
class OutputComparison:
    """The comparison of one output with the expected one; its figures are over all elements."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    status: Literal["pass", "mismatch"]
    required: TractCheckTolerance
    level: TractCheckTolerance | None
    """The tightest level that holds; None if not even the loosest does."""
    limit: str = ""
    """The requirement in place of the required level: `atol=0.01 rtol=0`, or `metrics`."""
    outside: float = 0.0
    """Share of the elements outside the requirement."""
    problem: str = ""
    """A problem that no tolerance covers: a missing output, another dtype, another shape, an infinity, a NaN."""
    required_atol: float = 0.0
    """Smallest atol that would pass with rtol 0."""
    required_rtol: float = 0.0
    """Smallest rtol that would pass with atol 0."""
    max_abs: float = 0.0
    max_rel: float = 0.0
    """Largest `|expected - actual| / |expected|` where expected is not 0."""
    max_ulp: int | None = None
    """Largest distance in representable values of the dtype; None for integers and booleans."""
    mean_abs: float | None = None
    """Mean of `|expected - actual|`, in which equal NaN and infinities count as 0; None if nothing was compared."""
    sqnr: float | None = None
    """Signal-to-quantisation-noise ratio in decibels: `10 log10(sum expected² / sum (expected - actual)²)`.

    It is infinite for equal outputs. None for integers, and where an element of either side is NaN or infinite.
    """
    worst_index: tuple[int, ...] | None = None
    """The element that needs the most tolerance, in units of the required level; None if all are equal."""
    worst_expected: Scalar | None = None
    worst_actual: Scalar | None = None
    outliers: Mapping[str, float] = field(default_factory=dict)
    """Per level, the share of elements outside its atol and rtol."""
    nan_mismatches: int = 0
    inf_mismatches: int = 0
    moves: float | None = None
    """The largest difference of an element between samples of equal shapes in PyTorch."""
    moving: float = 0.0
    """Share of the elements that change by more than the required level tolerates."""
    weak: str = ""
    """The reason why a pass of this output proves little; empty if it proves enough."""
    not_finite: float = 0.0
    """Share of the elements that are NaN or infinite in PyTorch, of which a pass compares only the positions."""

    @property
    def passed(self) -> bool:
        return self.status == "pass"

    @property
    def note(self) -> str:
        """Return a note for readers of a pass; empty if there is none."""
        return f"{self.name} is NaN or infinite in {100 * self.not_finite:.3g} % of its elements" * bool(
            self.not_finite
        )


@dataclass(slots=True)
class _Tally:
    """Counts, sums and largest differences, gathered in one pass over the chunks."""

    size: int
    """Elements in all chunks."""
    beyond: int = 0
    """Elements outside the user's own tolerance."""
    wrong: dict[TractCheckTolerance, int] = field(default_factory=lambda: dict.fromkeys(LEVELS, 0))
    max_abs: float = 0.0
    mean_abs: float = 0.0
    max_rel: float = 0.0
    required_rtol: float = 0.0
    max_ulp: int | None = None
    sqnr: Sqnr = field(default_factory=Sqnr)
    worst_at: int | None = None
    worst_excess: float = 0.0
    nan_mismatches: int = 0
    inf_mismatches: int = 0

    def add_to_mean(self, gaps: Array) -> None:
        self.mean_abs += float((gaps / self.size).sum())  # a sum that is divided later may overflow

    def note_worst(self, at: int, excess: float) -> None:
        if self.worst_at is None or excess > self.worst_excess:
            self.worst_at, self.worst_excess = at, excess


def compare(
    expected: Array,
    actual: Array,
    *,
    name: str = "output",
    criteria: Judgement = DEFAULT_CRITERIA,
) -> OutputComparison:
    """Compare `actual` of an engine with `expected` of PyTorch; a mismatch is a value, never an exception."""
    required, limit, words = criteria.level_of(name), criteria.limit_of(name), criteria.criterion_text(name)
    expected, actual = np.asarray(expected), np.asarray(actual)
    dtype, shape = str(expected.dtype), tuple(expected.shape)
    problems = []
    if actual.dtype != expected.dtype:
        problems.append(f"dtype {actual.dtype}, expected {dtype}")
    if actual.shape != expected.shape:
        problems.append(f"shape {list(actual.shape)}, expected {list(shape)}")
        return OutputComparison(
            name, dtype, shape, "mismatch", required, None, problem="; ".join(problems), limit=words
        )
    unordered = {expected.dtype.kind, actual.dtype.kind} - set("biuf")
    if unordered:
        problems.append(f"dtype {dtype} cannot be compared")
        return OutputComparison(
            name, dtype, shape, "mismatch", required, None, problem="; ".join(problems), limit=words
        )

    a, b = np.ascontiguousarray(expected).reshape(-1), np.ascontiguousarray(actual).reshape(-1)
    own = None if limit is None else Bounds(*limit)
    tally = _tally(a, b, required, own)
    if tally.nan_mismatches:
        problems.append(f"{tally.nan_mismatches} NaN where the other side has none")
    if tally.inf_mismatches:
        problems.append(f"{tally.inf_mismatches} infinities where the other side is finite or of the other sign")
    outliers = {level.value: tally.wrong[level] / a.size if a.size else 0.0 for level in LEVELS}
    level = None
    if not problems:
        holding = (one for one in LEVELS if outliers[one.value] <= bounds_of(one, expected.dtype).outliers)
        level = next(holding, None)
    held = level is not None and level <= required if own is None else not problems and not tally.beyond
    at = tally.worst_at
    return OutputComparison(
        name,
        dtype,
        shape,
        "pass" if held else "mismatch",
        required,
        level,
        limit=words,
        outside=outliers[required.value] if own is None else tally.beyond / a.size if a.size else 0.0,
        problem="; ".join(problems),
        required_atol=tally.max_abs,
        required_rtol=tally.required_rtol,
        max_abs=tally.max_abs,
        max_rel=tally.max_rel,
        max_ulp=tally.max_ulp,
        mean_abs=tally.mean_abs,
        sqnr=tally.sqnr.decibels if tally.max_ulp is not None else None,
        worst_index=None if at is None else tuple(int(i) for i in np.unravel_index(at, shape)),
        worst_expected=None if at is None else a[at].item(),
        worst_actual=None if at is None else b[at].item(),
        outliers=outliers,
        nan_mismatches=tally.nan_mismatches,
        inf_mismatches=tally.inf_mismatches,
    )


def compare_outputs(
    expected: Sequence[Array],
    actual: Sequence[Array],
    *,
    names: Sequence[str] = (),
    criteria: Judgement = DEFAULT_CRITERIA,
) -> tuple[OutputComparison, ...]:
    """Compare output by output, in order; a missing or extra output is a separate mismatch."""
    compared = []
    for index in range(max(len(expected), len(actual))):
        name = names[index] if index < len(names) else f"output_{index}"
        if index < len(expected) and index < len(actual):
            compared.append(compare(expected[index], actual[index], name=name, criteria=criteria))
            continue
        missing = index >= len(actual)
        existing = np.asarray(expected[index] if missing else actual[index])
        problem = f"{'missing' if missing else 'extra'} output: {len(actual)} came, expected {len(expected)}"
        compared.append(
            OutputComparison(
                name,
                str(existing.dtype),
                tuple(existing.shape),
                "mismatch",
                criteria.level_of(name),
                None,
                problem=problem,
            )
        )
    return tuple(compared)


def _tally(a: Array, b: Array, required: TractCheckTolerance, own: Bounds | None) -> _Tally:
    tally = _Tally(a.size)
    floats = a.dtype == b.dtype and a.dtype.kind == "f"
    if floats:
        tally.max_ulp = 0
    ladder = {level: bounds_of(level, a.dtype) for level in LEVELS}
    integral = a.dtype.kind in "biu" and b.dtype.kind in "biu"
    for start, x, y in _chunks(a, b):
        if integral:
            _tally_integers(tally, start, x, y, own)
        else:
            _tally_floats(tally, start, x, y, ladder, ladder[required], own, with_ulp=floats)
    return tally


def _chunks(a: Array, b: Array) -> Iterator[tuple[int, Array, Array]]:
    for start in range(0, a.size, _CHUNK):
        yield start, a[start : start + _CHUNK], b[start : start + _CHUNK]


def _tally_integers(tally: _Tally, start: int, x: Array, y: Array, own: Bounds | None) -> None:
    differ = np.flatnonzero(x != y)
    if not differ.size:
        return
    for level in LEVELS:
        tally.wrong[level] += differ.size
    x, y = x[differ], y[differ]
    # Two's complement wraps, so the unsigned difference is exact over the whole range of 64 bits.
    ux, uy = x.astype(np.uint64), y.astype(np.uint64)
    distance = np.where(x > y, ux - uy, uy - ux)
    at = int(distance.argmax())
    biggest = int(distance[at])
    tally.max_abs = max(tally.max_abs, biggest)
    tally.note_worst(start + int(differ[at]), biggest)
    steps, size = distance.astype(np.float64), y.astype(np.float64)
    tally.add_to_mean(steps)
    if own is not None:
        tally.beyond += int(np.count_nonzero(steps > own.atol + own.rtol * np.abs(size)))
    _note_relative(tally, steps, x.astype(np.float64), size)


def _tally_floats(
    tally: _Tally,
    start: int,
    x: Array,
    y: Array,
    ladder: Mapping[TractCheckTolerance, Bounds],
    wanted: Bounds,
    own: Bounds | None,
    *,
    with_ulp: bool,
) -> None:
    with np.errstate(all="ignore"):
        a, b = x.astype(np.float64), y.astype(np.float64)
        gap = np.abs(a - b)
    if np.isfinite(gap).all():
        tally.sqnr.add(a, gap)
        kept = np.flatnonzero(gap)
    else:
        tally.sqnr.defined = False
        _tally_special(tally, start, a, b, ladder)
        # A float64 difference can overflow although both sides are finite; its gap is then infinite.
        kept = np.flatnonzero(np.isfinite(a) & np.isfinite(b) & (a != b))
    if not kept.size:
        return
    if kept.size < gap.size:
        a, b, gap, x, y = a[kept], b[kept], gap[kept], x[kept], y[kept]
    size = np.abs(b)
    if own is not None:
        tally.beyond += int(np.count_nonzero(gap > own.atol + own.rtol * size))
    if own is not None and np.isfinite(own.atol):
        wanted = own
    with np.errstate(all="ignore"):
        excess = gap / (wanted.atol + wanted.rtol * size) if wanted.atol or wanted.rtol else gap
    at = int(excess.argmax())
    tally.note_worst(start + int(kept[at]), float(excess[at]))
    tally.max_abs = max(tally.max_abs, float(gap.max()))
    tally.add_to_mean(gap)
    _note_relative(tally, gap, a, b)
    if with_ulp:
        tally.max_ulp = max(tally.max_ulp or 0, _ulp_distance(x, y))
    # Each level contains the one before, so only elements that failed there are compared again.
    for level in LEVELS:
        bounds = ladder[level]
        beyond = gap > bounds.atol + bounds.rtol * size
        count = int(np.count_nonzero(beyond))
        tally.wrong[level] += count
        if not count:
            break
        if count < gap.size:
            gap, size = gap[beyond], size[beyond]


def _tally_special(tally: _Tally, start: int, a: Array, b: Array, ladder: Mapping[TractCheckTolerance, Bounds]) -> None:
    nan_a, nan_b = np.isnan(a), np.isnan(b)
    nan_differ = nan_a ^ nan_b
    inf_differ = (np.isinf(a) | np.isinf(b)) & ~nan_a & ~nan_b & (a != b)
    tally.nan_mismatches += int(np.count_nonzero(nan_differ))
    tally.inf_mismatches += int(np.count_nonzero(inf_differ))
    broken = np.flatnonzero(nan_differ | inf_differ)
    if not broken.size:
        return
    for level in ladder:
        tally.wrong[level] += broken.size
    tally.max_abs = tally.mean_abs = tally.required_rtol = math.inf
    tally.note_worst(start + int(broken[0]), math.inf)


def _note_relative(tally: _Tally, gap: Array, a: Array, b: Array) -> None:
    with np.errstate(all="ignore"):
        to_actual = gap / np.abs(b)
        to_expected = gap / np.abs(a)
    tally.required_rtol = max(tally.required_rtol, float(to_actual.max()))
    known = to_expected[a != 0]
    if known.size:
        tally.max_rel = max(tally.max_rel, float(known.max()))


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
