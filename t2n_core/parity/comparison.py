"""Compare an engine's output with PyTorch's, element by element.

Stricter than tract where tract's formula has gaps: another dtype or shape, an infinity against a finite value or of the
other sign, and a NaN against a number fail at every level. Integers and booleans must be equal at every level, and only
the outliers of the loosest levels apply to them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from t2n_core.parity.judging.judgement import DEFAULT_CRITERIA, Judgement
from t2n_core.parity.tally import Figures, Tally
from t2n_core.parity.tolerance import LEVELS, Bounds, TractCheckTolerance, bounds_of

Array = NDArray[Any]
Scalar = bool | int | float


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
    """The requirement that replaces the required level: `atol=0.01 rtol=0`, or `metrics`."""
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


def compare(
    expected: Array, actual: Array, *, name: str = "output", criteria: Judgement = DEFAULT_CRITERIA
) -> OutputComparison:
    """Compare `actual` of an engine with `expected` of PyTorch; a mismatch is a value, never an exception."""
    words = criteria.criterion_text(name)
    expected, actual = np.asarray(expected), np.asarray(actual)
    required, user_bounds = _requirement(name, criteria)
    dtype, shape = str(expected.dtype), tuple(expected.shape)
    problems, is_comparable = _problems_of_type(expected, actual)
    if not is_comparable:
        return OutputComparison(
            name, dtype, shape, "mismatch", required, None, problem="; ".join(problems), limit=words
        )

    a, b = _flat(expected), _flat(actual)
    ladder = {level: bounds_of(level, a.dtype) for level in LEVELS}
    # the bounds of `metrics` are infinite, and rank no elements
    figures = Figures(
        a.size, user_bounds if user_bounds is not None and math.isfinite(user_bounds.atol) else ladder[required]
    )
    figures.max_ulp = 0 if a.dtype == b.dtype and a.dtype.kind == "f" else None
    tally = Tally(a.size, required, ladder, user_bounds, figures).count(a, b)
    if tally.nan_mismatches:
        problems.append(f"{tally.nan_mismatches} NaN where the other side has none")
    if tally.inf_mismatches:
        problems.append(f"{tally.inf_mismatches} infinities where the other side is finite or of the other sign")
    at = figures.worst_at
    return OutputComparison(
        name,
        dtype,
        shape,
        "pass" if not problems and tally.passes else "mismatch",
        required,
        None if problems else next(filter(tally.holds, LEVELS), None),
        limit=words,
        outside=tally.outside,
        problem="; ".join(problems),
        required_atol=tally.max_abs,
        required_rtol=figures.required_rtol,
        max_abs=tally.max_abs,
        max_rel=figures.max_rel,
        max_ulp=figures.max_ulp,
        mean_abs=figures.mean_abs,
        sqnr=figures.sqnr.decibels if figures.max_ulp is not None else None,
        worst_index=None if at is None else tuple(int(i) for i in np.unravel_index(at, shape)),
        worst_expected=None if at is None else a[at].item(),
        worst_actual=None if at is None else b[at].item(),
        outliers={level.value: tally.share_outside(level) for level in LEVELS},
        nan_mismatches=tally.nan_mismatches,
        inf_mismatches=tally.inf_mismatches,
    )


@dataclass(frozen=True, slots=True)
class Difference:
    """How far two arrays are apart; the fields are as in `OutputComparison`."""

    max_abs: float = 0.0
    outside: float = 0.0
    passed: bool = False


def difference(
    expected: Array, actual: Array, *, name: str, criteria: Judgement, until_failure: bool = False
) -> Difference:
    """Return what `compare` finds, without the figures of its report, which take most of its time.

    With `until_failure`, reading stops once elements decide against a pass, and only `passed` counts.
    """
    problems, is_comparable = _problems_of_type(expected, actual)
    if not is_comparable or (until_failure and problems):
        return Difference()
    a, b = _flat(expected), _flat(actual)
    required, user_bounds = _requirement(name, criteria)
    ladder = {required: bounds_of(required, a.dtype)} if user_bounds is None else {}
    tally = Tally(a.size, required, ladder, user_bounds).count(a, b, until_failure=until_failure)
    return Difference(tally.max_abs, tally.outside, not problems and tally.passes)


def _requirement(name: str, criteria: Judgement) -> tuple[TractCheckTolerance, Bounds | None]:
    """Return the level of an output, and the user's own tolerance if it replaces the level."""
    limit = criteria.limit_of(name)
    return criteria.level_of(name), None if limit is None else Bounds(*limit)


def _problems_of_type(expected: Array, actual: Array) -> tuple[list[str], bool]:
    """Return how dtype and shape differ, and whether elements can be compared nevertheless."""
    problems = []
    if actual.dtype != expected.dtype:
        problems.append(f"dtype {actual.dtype}, expected {expected.dtype}")
    if actual.shape != expected.shape:
        problems.append(f"shape {list(actual.shape)}, expected {list(expected.shape)}")
        return problems, False
    if {expected.dtype.kind, actual.dtype.kind} - set("biuf"):
        problems.append(f"dtype {expected.dtype} cannot be compared")
        return problems, False
    return problems, True


def _flat(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1)


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
