"""tract's tolerance levels: the constants of `tract:data/src/tensor.rs`, as in the newest release.

The comparison by these bounds is `t2n_core.parity.comparison`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import DTypeLike

from t2n_core.level import DEFAULT_LEVEL, LEVELS, TractCheckTolerance


@dataclass(frozen=True, slots=True)
class Bounds:
    """An element is right if `|expected - actual| <= atol + rtol * |actual|`."""

    atol: float
    rtol: float
    outliers: float = 0.0
    """Share of the elements that may be wrong."""


def bounds_of(level: str | TractCheckTolerance, dtype: DTypeLike) -> Bounds:
    """Return the bounds of a level for values of `dtype`. Raises InputError if there is no such level."""
    return _bounds(TractCheckTolerance.parse(level), np.dtype(dtype) == np.float16)


@cache
def _bounds(level: TractCheckTolerance, half: bool) -> Bounds:
    match level:
        case TractCheckTolerance.EXACT:
            return Bounds(0.0, 0.0)
        case TractCheckTolerance.CLOSE:
            return Bounds(1e-3, 1e-3) if half else Bounds(1e-7, 1e-7)
        case TractCheckTolerance.APPROXIMATE:
            return Bounds(1e-3, 5e-3) if half else Bounds(1e-4, 5e-4)
        case TractCheckTolerance.VERY:
            return Bounds(5e-2, 1e-2)
        case TractCheckTolerance.SUPER:
            return Bounds(0.1, 0.05, 1e-4)
        case TractCheckTolerance.ULTRA:
            return Bounds(0.2, 0.1, 5e-4)


__all__ = ["DEFAULT_LEVEL", "LEVELS", "Bounds", "TractCheckTolerance", "bounds_of"]
