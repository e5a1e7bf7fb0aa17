"""tract's own formula for "close enough", against which the comparison of `t2n_core.parity` is tested."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from t2n_core.parity.tolerance import TractCheckTolerance, bounds_of


def tract_close_enough(
    expected: NDArray[Any], actual: NDArray[Any], level: str | TractCheckTolerance, *, allow_float_casts: bool = True
) -> bool:
    """Return the verdict of `tract … run --assert-output-bundle --approx LEVEL`, its gaps included.

    Everything is cast to float32 first, dtypes are not compared, and an infinite result passes where rtol > 0.
    """
    if expected.shape != actual.shape:
        return False
    if allow_float_casts and expected.dtype == np.float32 and actual.dtype == np.float16:
        expected = expected.astype(np.float16)
    bounds = bounds_of(level, expected.dtype)
    with np.errstate(all="ignore"):
        a, b = expected.astype(np.float32), actual.astype(np.float32)
        same = (np.isnan(a) & np.isnan(b)) | (np.isinf(a) & (a == b))
        near = np.abs(a - b) <= np.float32(bounds.atol) + np.float32(bounds.rtol) * np.abs(b)
    wrong = np.count_nonzero(~(same | near))
    return a.size == 0 or bool(wrong / a.size <= bounds.outliers)
