"""Axes that are aligned at the front."""

from __future__ import annotations

import numpy as np

from t2n_core.dialect.meaning.broadcasting import aligned


def test_axes_are_added_at_the_end() -> None:
    shapes = [one.shape for one in aligned(np.zeros((2, 3, 4)), np.zeros(2), np.asarray(5.0), np.zeros((2, 1)))]
    assert shapes == [(2, 3, 4), (2, 1, 1), (1, 1, 1), (2, 1, 1)]


def test_each_row_has_its_own_value() -> None:
    left, right = aligned(np.asarray([[1, 2, 3], [4, 5, 6]]), np.asarray([10, 20]))
    assert (left + right).tolist() == [[11, 12, 13], [24, 25, 26]]
