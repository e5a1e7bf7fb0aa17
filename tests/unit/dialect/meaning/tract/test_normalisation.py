"""Normalisations of values whose mean of squares is known."""

import math

import numpy as np
import pytest

from t2n_core.dialect.meaning.tract.normalisation import exp_mean_norm, exp_unit_norm, lrn, rms_norm, scaled_rms_norm
from t2n_core.errors import SpecError


def test_rms_norm() -> None:
    np.testing.assert_allclose(rms_norm(np.asarray([[1.0, 7.0]]), 1, 0.0), [[0.2, 1.4]])
    np.testing.assert_allclose(rms_norm(np.asarray([[3.0], [0.0]]), -1, 16.0), [[0.6], [0.0]])
    np.testing.assert_array_equal(rms_norm(np.zeros(2), 0, 0.0), [math.nan, math.nan])
    np.testing.assert_array_equal(rms_norm(np.asarray([math.inf, 1.0]), 0), [math.nan, 0.0])


def test_scaled_rms_norm_rounds_before_the_product_and_after_it() -> None:
    x, weights = np.asarray([[1.0, 7.0]], dtype=np.float32), np.asarray([3.0, 1.0], dtype=np.float32)
    plain = scaled_rms_norm(x, weights, 1, 0.0)
    assert plain.dtype == np.float32
    np.testing.assert_allclose(plain, [[0.6, 1.4]], rtol=1e-7)
    coarse = scaled_rms_norm(x, weights, 1, 0.0, "f32", "f16")
    np.testing.assert_array_equal(coarse, np.asarray([[3 * float(np.float16(0.2)), np.float16(1.4)]], np.float32))
    assert scaled_rms_norm(x, weights, 1, 0.0, "f16").dtype == np.float16
    with pytest.raises(SpecError, match="2 weights for an axis of 1"):
        scaled_rms_norm(x, weights, 0)


def test_lrn_counts_an_even_window_one_further_after() -> None:
    x = np.asarray([[1.0, 2.0, 3.0]])
    sums = np.asarray([5.0, 13.0, 9.0])
    np.testing.assert_allclose(lrn(x, 2.0, 1.0, 3.0, size=2), x / (3.0 + sums))
    np.testing.assert_allclose(lrn(x, 3.0, 0.5, 2.0, size=3), x / np.sqrt(2.0 + np.asarray([5.0, 14.0, 13.0])))


def test_exp_mean_norm() -> None:
    x = np.asarray([[4.0], [8.0], [2.0]])
    result = exp_mean_norm(x, np.asarray([2.0]), 0, 0.5, scaling_factor=2.0)
    np.testing.assert_allclose(result, [[0.5], [1.25], [-0.875]])
    skipped = exp_mean_norm(x, np.asarray([2.0]), 0, 0.5, 1, scaling_factor=2.0)
    np.testing.assert_allclose(skipped, [[1.0], [1.5], [-0.75]])


def test_exp_unit_norm() -> None:
    x = np.asarray([[-7.0, 0.0]])
    result = exp_unit_norm(x, np.asarray([1.0]), 1, 0.5, epsilon=5.0)
    np.testing.assert_allclose(result, [[-3.5, 0.0]])  # the magnitudes are 4 and 4.5
    skipped = exp_unit_norm(x, np.asarray([4.0]), 1, 0.5, 2)
    np.testing.assert_allclose(skipped, [[-3.5, 0.0]])
    pair = exp_unit_norm(np.asarray([[3.0, 4.0]]), np.asarray(3.0), 0, 0.5, complex=True)
    np.testing.assert_allclose(pair, [[1.5, 2.0]])


def test_the_defaults_of_rms_norm_and_lrn() -> None:
    np.testing.assert_allclose(rms_norm(np.asarray([[1e-3]]), 1), [[0.5**0.5]])
    np.testing.assert_allclose(scaled_rms_norm(np.asarray([[1e-3]]), np.asarray([3.0]), 1), [[3 * 0.5**0.5]])
    x = np.asarray([[100.0, 200.0, 300.0]])
    np.testing.assert_allclose(lrn(x, size=3), x / [(1 + 5 / 3) ** 0.75, (1 + 14 / 3) ** 0.75, (1 + 13 / 3) ** 0.75])


def test_exp_unit_norm_of_several_channels() -> None:
    x = np.asarray([[1.0, -2.0, 4.0], [3.0, 6.0, 0.0]])
    result = exp_unit_norm(x, np.asarray([1.0, 2.0, 4.0]), 0, 0.5)
    half = 2.0**0.5  # the magnitudes are 1, 2, 4, then 2, 4, 2
    np.testing.assert_allclose(result, [[1.0, -half, 2.0], [3 / half, 3.0, 0.0]])
    pairs = np.asarray([[[3.0, 4.0], [0.0, 1.0]]])
    np.testing.assert_allclose(
        exp_unit_norm(pairs, np.asarray([3.0, 7.0]), 0, 0.5, complex=True), [[[1.5, 2.0], [0.0, 0.5]]]
    )
    small = exp_unit_norm(np.asarray([1e-3]), np.asarray(0.999), 0, 0.5)
    np.testing.assert_allclose(small, [1e-3 / 0.5**0.5])
