"""The values with which a maximum and a minimum begin."""

from __future__ import annotations

import numpy as np
import pytest

from t2n_core.dialect.meaning.extremes import highest, lowest


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [(np.float32, -np.inf, np.inf), (np.bool_, False, True), (np.int16, -32768, 32767), (np.uint8, 0, 255)],
)
def test_the_extremes_of_a_data_type(kind: type, low: float, high: float) -> None:
    assert lowest(np.dtype(kind)) == low
    assert highest(np.dtype(kind)) == high
    assert type(lowest(np.dtype(kind))) is type(low)
    assert type(highest(np.dtype(kind))) is type(high)
