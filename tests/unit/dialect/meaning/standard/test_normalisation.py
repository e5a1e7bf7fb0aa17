"""Normalisations with the defaults of their attributes, and with each of them."""

from __future__ import annotations

import numpy as np

from t2n_core.dialect.meaning.standard.normalisation import (
    batch_normalization,
    l1_normalization,
    l2_normalization,
    local_contrast_normalization,
    local_mean_normalization,
    local_response_normalization,
    local_variance_normalization,
)

ROW = np.asarray([[2.0, 4.0, 6.0]])


def test_local_response() -> None:
    # the squares are 4, 16 and 36: their means over three, with zeros around them, are 20/3, 56/3 and 52/3
    means = np.asarray([20 / 3, 56 / 3, 52 / 3])
    np.testing.assert_allclose(local_response_normalization(ROW, [1, 3]), ROW / np.sqrt(1 + means))
    np.testing.assert_allclose(local_response_normalization(ROW, [1, 3], 3.0, 2.0, 0.5), ROW / (0.5 + 3 * means) ** 2)


def test_local_mean_and_variance() -> None:
    np.testing.assert_allclose(local_mean_normalization(ROW, [1, 3]), [[0.0, 0.0, 6 - 10 / 3]])
    roots = np.sqrt([20 / 3, 56 / 3, 52 / 3])
    np.testing.assert_allclose(local_variance_normalization(ROW, [1, 3]), ROW / roots)
    np.testing.assert_allclose(
        local_variance_normalization(ROW, [1, 3], 1.0, 5.0), ROW / [5, 1 + roots[1], 1 + roots[2]]
    )


def test_local_contrast() -> None:
    # the means over an element and the next one are 3, 5, 3; the squares of -1, -1, 3 have the means 1, 5, 4.5
    centred, roots = np.asarray([[-1.0, -1.0, 3.0]]), np.sqrt([1.0, 5.0, 4.5])
    np.testing.assert_allclose(local_contrast_normalization(ROW, [1, 2]), centred / roots)
    np.testing.assert_allclose(local_contrast_normalization(0.01 * ROW, [1, 2]), centred / roots)
    np.testing.assert_allclose(local_contrast_normalization(ROW, [1, 2], 1.0, 2.5), centred / [2.5, *(1 + roots[1:])])


def test_sums_along_axes() -> None:
    x = np.asarray([[3.0, -4.0], [0.0, 2.0]])
    np.testing.assert_allclose(l1_normalization(x, [1]), [[3 / 7, -4 / 7], [0.0, 1.0]])
    np.testing.assert_allclose(l1_normalization(x, [0, 1], 1.0), x / 10)
    np.testing.assert_allclose(l1_normalization(x, [1], 1.0, 7.0), x / [[8.0], [7.0]])
    np.testing.assert_allclose(l2_normalization(x, [1]), [[0.6, -0.8], [0.0, 1.0]])
    np.testing.assert_allclose(l2_normalization(x, [0, 1]), x / np.sqrt(29))
    np.testing.assert_allclose(l2_normalization(x, [0], 1.0, 5.0), x / [5.0, 1 + np.sqrt(20)])
    np.testing.assert_allclose(l1_normalization(0.01 * x, [1]), [[3 / 7, -4 / 7], [0.0, 1.0]])
    np.testing.assert_allclose(l2_normalization(0.01 * x, [1]), [[0.6, -0.8], [0.0, 1.0]])


def test_batch_normalization() -> None:
    x = np.asarray([[[1.0, 2.0], [3.0, 5.0]]])
    mean, variance, offset, scale = (np.asarray([row]) for row in ([2.0, 4.0], [3.0, 8.0], [0.5, 1.0], [4.0, -3.0]))
    result = batch_normalization(x, mean, variance, offset, scale, 1.0)
    np.testing.assert_allclose(result, [[[-1.5, 0.5], [2.0, 0.0]]])
