"""SQNR and mean error have the values of their formulas, also over several chunks and for extreme values."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

from t2n_core.parity.comparison import compare, compare_outputs

F16, F32, F64 = np.float16, np.float32, np.float64


@pytest.mark.parametrize("dtype", [F16, F32, F64])
def test_values_by_hand(dtype):
    # signal 9 + 16 = 25, noise 0.5² = 0.25, ratio 100
    comparison = compare(np.array([3.0, -4.0], dtype), np.array([3.0, -4.5], dtype))
    assert comparison.sqnr == pytest.approx(20, abs=1e-12)
    assert comparison.mean_abs == 0.25
    # signal 4 + 0 + 1 = 5, noise 1 + 4 + 0 = 5
    comparison = compare(np.array([-2.0, 0.0, 1.0], dtype), np.array([-3.0, 2.0, 1.0], dtype))
    assert comparison.sqnr == pytest.approx(0, abs=1e-12)
    assert comparison.mean_abs == 1.0
    # signal 1, noise 100
    assert compare(np.array([1.0], dtype), np.array([-9.0], dtype)).sqnr == pytest.approx(-20, abs=1e-12)


def test_equal_outputs_have_no_noise():
    values = np.array([[0.0, -1.5, 2.0]], F32)
    assert (compare(values, values.copy()).sqnr, compare(values, values.copy()).mean_abs) == (math.inf, 0.0)
    zeros = np.zeros(5, F32)
    assert compare(zeros, -zeros).sqnr == math.inf
    empty = np.zeros((0, 3), F32)
    assert (compare(empty, empty).sqnr, compare(empty, empty).mean_abs) == (math.inf, 0.0)


def test_zeros_that_the_engine_does_not_return():
    comparison = compare(np.zeros(4, F32), np.array([0.0, 0.0, 0.5, 0.0], F32))
    assert (comparison.sqnr, comparison.mean_abs) == (-math.inf, 0.125)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_no_ratio_where_an_element_is_not_finite(special):
    finite, values = np.array([1.0, 2.0, 4.0], F32), np.array([1.0, special, 4.5], F32)
    both = compare(np.array([1.0, special, 4.0], F32), values)
    assert both.sqnr is None
    assert both.mean_abs == pytest.approx(0.5 / 3)
    actual_only = compare(finite, values)
    assert (actual_only.sqnr, actual_only.mean_abs) == (None, math.inf)
    assert (compare(values, finite).sqnr, compare(values, finite).mean_abs) == (None, math.inf)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.int64, np.uint64])
def test_integers_have_a_mean_error_and_no_ratio(dtype):
    comparison = compare(np.array([1, 0, 1, 1], dtype), np.array([1, 1, 1, 0], dtype))
    assert (comparison.sqnr, comparison.mean_abs) == (None, 0.5)


def test_the_widest_integers_have_a_mean_error():
    comparison = compare(np.array([-(2**63), 0]), np.array([2**63 - 1, 0]))
    assert comparison.mean_abs == pytest.approx(2.0**63)


def test_no_values_for_what_is_not_compared():
    vector, matrix = np.ones(2, F32), np.ones((2, 3), F32)
    assert (compare(vector, matrix).sqnr, compare(vector, matrix).mean_abs) == (None, None)
    assert [output.sqnr for output in compare_outputs([vector, matrix], [vector])] == [math.inf, None]
    assert compare(vector, vector.astype(F64)).sqnr is None


@pytest.mark.parametrize("scale", [1e-200, 1e-300, 1e200])
def test_extreme_values_neither_overflow_nor_vanish(scale):
    comparison = compare(scale * np.array([3.0, -4.0]), scale * np.array([3.0, -4.5]))
    assert comparison.sqnr == pytest.approx(20, abs=1e-9)
    assert comparison.mean_abs == pytest.approx(0.25 * scale)
    tiny = compare(np.array([1.0, -2.0]), np.array([1.0 + 2**-52, -2.0]))
    assert tiny.sqnr == pytest.approx(10 * math.log10(5 * 2.0**104), abs=1e-9)


def test_a_difference_beyond_float64_has_no_ratio():
    comparison = compare(np.array([1e308, 0.5]), np.array([-1e308, 0.5]))
    assert (comparison.sqnr, comparison.mean_abs) == (None, math.inf)
    comparison = compare(np.array([1e308, -1e308, 1e308]), np.array([0.0, 0.0, 0.0]))
    assert comparison.sqnr == pytest.approx(0, abs=1e-12)
    assert comparison.mean_abs == pytest.approx(1e308)


@pytest.mark.parametrize("dtype", [F16, F32, F64])
def test_chunks_add_up(dtype):
    rng = np.random.default_rng(7)
    # the magnitude changes from chunk to chunk, and one chunk is equal
    expected = (rng.standard_normal(200_003) * np.repeat([1e-3, 1.0, 30.0, 1e-2], 50_001)[:200_003]).astype(dtype)
    actual = (expected + 1e-2 * rng.standard_normal(200_003)).astype(dtype)
    actual[70_000:150_000] = expected[70_000:150_000]
    a, b = expected.astype(F64), actual.astype(F64)
    comparison = compare(expected, actual)
    assert comparison.sqnr == pytest.approx(10 * math.log10((a**2).sum() / ((a - b) ** 2).sum()), abs=1e-9)
    assert comparison.mean_abs == pytest.approx(np.abs(a - b).mean())


def test_a_large_output_is_not_copied():
    expected = np.random.default_rng(7).standard_normal(4_000_000).astype(F32)
    actual = expected * F32(1.001)
    tracemalloc.start()
    assert compare(expected, actual).sqnr == pytest.approx(60, abs=0.1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < expected.nbytes / 2
