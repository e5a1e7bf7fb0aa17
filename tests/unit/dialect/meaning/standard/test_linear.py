"""Products of matrices of different extents."""

from __future__ import annotations

import numpy as np

from t2n_core.dialect.meaning.standard.linear import linear, matmul

A, B = np.asarray([[1.0, 2.0, 3.0]]), np.asarray([[1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])


def test_matmul() -> None:
    assert matmul(A, B, transposeB=True).tolist() == [[4.0, 4.0]]
    assert matmul(A, A, transposeA=True)[1].tolist() == [2.0, 4.0, 6.0]


def test_linear_has_no_bias_by_default() -> None:
    assert linear(A, B).tolist() == [[4.0, 4.0]]
    assert linear(A, B, 0.5).tolist() == [[4.5, 4.5]]
    assert linear(A, B, np.asarray([[1.0, -1.0]])).tolist() == [[5.0, 3.0]]
