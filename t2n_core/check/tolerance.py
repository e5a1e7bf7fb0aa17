"""tract's ladder of tolerances, and tract's own formula for "close enough".

The numbers are those of `tract:data/src/tensor.rs`, with the changes that releases made to them. The comparison that
decides about a cell is `t2n_core.check.comparison`; `tract_close_enough` is what tract's command line would answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from packaging.version import Version

from t2n_core.check.level import DEFAULT_LEVEL, LEVELS, TractCheckTolerance
from t2n_core.errors import InputError

_APPROX_OPTION = Version("0.21.7")
"""First release whose command line has `--approx`; before it, always `approximate`."""
_SIX_LEVELS = Version("0.21.8")
_QUANTIZED_SCALE = Version("0.20.18")


@dataclass(frozen=True, slots=True)
class Bounds:
    """An element is right if `|expected - actual| <= atol + rtol * |actual|`."""

    atol: float
    rtol: float
    outliers: float = 0.0
    """Share of the elements that may be wrong."""


def levels_of(version: str | Version) -> tuple[TractCheckTolerance, ...]:
    """Return the levels that the command line of this tract version offers."""
    release = Version(str(version))
    if release < _APPROX_OPTION:
        return (TractCheckTolerance.APPROXIMATE,)
    if release < _SIX_LEVELS:
        return (
            TractCheckTolerance.EXACT,
            TractCheckTolerance.CLOSE,
            TractCheckTolerance.APPROXIMATE,
            TractCheckTolerance.SUPER,
        )
    return LEVELS


def bounds_of(
    level: str | TractCheckTolerance,
    dtype: DTypeLike,
    version: str | Version | None = None,
    *,
    scale: float | None = None,
) -> Bounds:
    """Return the bounds of a level for values of `dtype`, as `version` of tract has them (None: the newest).

    `scale` is that of a quantized expectation, which replaces the bounds of `approximate`.

    Raises:
        InputError: no such level, or this version does not offer it.
    """
    wanted = TractCheckTolerance.parse(level)
    release = None if version is None else Version(str(version))
    if release is not None and wanted not in levels_of(release):
        offered = ", ".join(levels_of(release))
        raise InputError(f"tract {release} has no tolerance level {wanted.value!r}", hint=f"it offers {offered}")
    half = np.dtype(dtype) == np.float16
    match wanted:
        case TractCheckTolerance.EXACT:
            return Bounds(0.0, 0.0)
        case TractCheckTolerance.CLOSE:
            return Bounds(1e-3, 1e-3) if half else Bounds(1e-7, 1e-7)
        case TractCheckTolerance.APPROXIMATE:
            if scale is not None and not half and (release is None or release >= _QUANTIZED_SCALE):
                return Bounds(scale, 0.0)
            return Bounds(1e-3, 5e-3) if half else Bounds(1e-4, 5e-4)
        case TractCheckTolerance.VERY:
            return Bounds(5e-2, 1e-2)
        case TractCheckTolerance.SUPER:
            if release is not None and release < _SIX_LEVELS:
                return Bounds(5e-2, 1e-2)
            return Bounds(0.1, 0.05, 1e-4)
        case TractCheckTolerance.ULTRA:
            return Bounds(0.2, 0.1, 5e-4)


def tract_close_enough(
    expected: NDArray[Any],
    actual: NDArray[Any],
    level: str | TractCheckTolerance,
    version: str | Version | None = None,
    *,
    allow_float_casts: bool = True,
    scale: float | None = None,
) -> bool:
    """Return the verdict of `tract … run --assert-output-bundle --approx LEVEL`, its gaps included.

    Everything is cast to float32 first, dtypes are not compared, and an infinite result passes where rtol > 0.
    """
    if expected.shape != actual.shape:
        return False
    if allow_float_casts and expected.dtype == np.float32 and actual.dtype == np.float16:
        expected = expected.astype(np.float16)
    bounds = bounds_of(level, expected.dtype, version, scale=scale)
    with np.errstate(all="ignore"):
        a, b = expected.astype(np.float32), actual.astype(np.float32)
        same = (np.isnan(a) & np.isnan(b)) | (np.isinf(a) & (a == b))
        near = np.abs(a - b) <= np.float32(bounds.atol) + np.float32(bounds.rtol) * np.abs(b)
    wrong = np.count_nonzero(~(same | near))
    return a.size == 0 or bool(wrong / a.size <= bounds.outliers)


__all__ = ["DEFAULT_LEVEL", "LEVELS", "Bounds", "TractCheckTolerance", "bounds_of", "levels_of", "tract_close_enough"]
