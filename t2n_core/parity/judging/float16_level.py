"""The level `float16`: errors against float64, relative to an output's largest value and to its standard deviation.

Both are independent of the scale of the net. An element-wise tolerance is not: with an absolute part, outputs of 1e-9
may be zeros, and without one, values near zero decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from numpy.typing import NDArray  # not at the start of each session of pytest

LARGEST: Final = 5e-3
"""The largest error of an element that passes, as a share of the largest value of its output."""


def peak(expected: Sequence[Any], actual: Sequence[Any]) -> float:
    """Return the largest error as a share of the largest value of its output.

    Infinite if integers differ, elements are NaN or infinite on one side only, or an output of zeros is not zero.
    """
    return max((_of_output(a, b, by_spread=False) for a, b in zip(expected, actual, strict=True)), default=0.0)


def rms(expected: Sequence[Any], actual: Sequence[Any]) -> float:
    """Return the root of the mean squared error as a share of the standard deviation of its output, like `peak`."""
    return max((_of_output(a, b, by_spread=True) for a, b in zip(expected, actual, strict=True)), default=0.0)


def _of_output(expected: NDArray[Any], actual: NDArray[Any], *, by_spread: bool) -> float:
    import numpy as np

    if expected.dtype.kind != "f":
        return 0.0 if np.array_equal(expected, actual) else float("inf")
    a, b = expected.astype(np.float64), actual.astype(np.float64)
    finite = np.isfinite(a)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.isfinite(b[finite]).all():
        return float("inf")
    if not finite.any():
        return 0.0
    a, b = a[finite], b[finite]
    error = np.abs(a - b)
    largest = float(np.abs(a).max())
    unit = (float(a.std()) or largest) if by_spread else largest
    size = float(np.sqrt(np.square(error).mean()) if by_spread else error.max())
    return size / unit if unit else 0.0 if size == 0 else float("inf")
