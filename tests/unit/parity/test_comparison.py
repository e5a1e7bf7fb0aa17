"""Every way in which an output can be wrong is found, and the numbers of a comparison are those of a slow reference."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
import pytest

from t2n_core.parity.comparison import compare, compare_outputs
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.tolerance import LEVELS, bounds_of
from tests.unit.parity.tract_formula import tract_close_enough

F16, F32, F64 = np.float16, np.float32, np.float64


def noisy(shape, dtype, scale, seed=7):
    rng = np.random.default_rng(seed)
    expected = rng.standard_normal(shape).astype(dtype)
    return expected, (expected + scale * rng.standard_normal(shape)).astype(dtype)


@pytest.mark.parametrize("dtype", [F16, F32, F64])
@pytest.mark.parametrize("scale", [0, 1e-8, 1e-5, 1e-3, 0.05, 0.2, 3.0])
def test_numbers_match_a_plain_reference(dtype, scale):
    expected, actual = noisy((37, 53), dtype, scale)
    comparison = compare(expected, actual)
    a, b = expected.astype(F64), actual.astype(F64)
    gap = np.abs(a - b)
    assert comparison.max_abs == gap.max() == comparison.required_atol
    assert comparison.max_rel == (gap / np.abs(a)).max()
    assert comparison.required_rtol == (gap / np.abs(b)).max()
    for level in LEVELS:
        bounds = bounds_of(level, dtype)
        assert comparison.outliers[level] == np.mean(gap > bounds.atol + bounds.rtol * np.abs(b))
    holding = [
        candidate for candidate in LEVELS if comparison.outliers[candidate] <= bounds_of(candidate, dtype).outliers
    ]
    assert comparison.level == (holding[0] if holding else None)


@pytest.mark.parametrize("dtype", [F16, F32])
@pytest.mark.parametrize("scale", [1e-8, 2e-4, 1e-2, 0.3])
def test_levels_are_those_of_tract_where_tract_has_no_hole(dtype, scale):
    expected, actual = noisy((101,), dtype, scale)
    comparison = compare(expected, actual)
    for level in LEVELS:
        holds = comparison.level is not None and comparison.level <= level
        assert holds == tract_close_enough(expected, actual, level)


@pytest.mark.parametrize("dtype", [F16, F32, F64])
def test_ulp_distance(dtype):
    base = np.array([1.0, -1.0, 0.0], dtype)
    up = np.nextafter(np.nextafter(base, dtype(np.inf)), dtype(np.inf))
    assert compare(base, up).max_ulp == 2
    assert compare(np.array([-0.0], dtype), np.array([0.0], dtype)).max_ulp == 0
    smallest = np.nextafter(dtype(0), dtype(1))
    assert compare(np.array([-smallest]), np.array([smallest])).max_ulp == 2
    limits = np.finfo(dtype)
    steps = compare(np.array([limits.min]), np.array([limits.max])).max_ulp
    assert steps == 2 * int(np.array([limits.max]).view(f"u{limits.dtype.itemsize}")[0])


def test_one_ulp_is_not_exact():
    comparison = compare(np.array([1.0], F64), np.nextafter(np.array([1.0], F64), 2), criteria=Judgement.parse("exact"))
    assert (comparison.status, comparison.level) == ("mismatch", "close")


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ([1.0, np.inf], [1.0, -np.inf]),
        ([1.0, 2.0], [1.0, np.inf]),
        ([1.0, np.inf], [1.0, 2.0]),
        ([1.0, np.nan], [1.0, 2.0]),
        ([1.0, 2.0], [1.0, np.nan]),
        ([1.0, np.nan], [1.0, np.inf]),
    ],
)
@pytest.mark.parametrize("dtype", [F16, F32, F64])
def test_infinities_and_nan_fail_at_every_level(expected, actual, dtype):
    # A share of one in 100 000 is below the outliers that the loosest level forgives.
    a, b = np.zeros(100_000, dtype), np.zeros(100_000, dtype)
    a[70_000:70_002], b[70_000:70_002] = expected, actual
    comparison = compare(a, b, criteria=Judgement.parse("ultra"))
    assert comparison.status == "mismatch"
    assert comparison.level is None
    assert comparison.worst_index == (70_001,)
    assert comparison.nan_mismatches + comparison.inf_mismatches == 1
    assert comparison.max_abs == math.inf
    assert comparison.problem


def test_equal_special_values_are_exact():
    values = np.array([np.nan, np.inf, -np.inf, 1.0], F32)
    comparison = compare(values, values.copy())
    assert (comparison.level, comparison.worst_index, comparison.max_ulp) == ("exact", None, 0)


def test_a_float64_difference_may_overflow():
    comparison = compare(np.array([1e308, 0.5]), np.array([-1e308, 0.5]))
    assert (comparison.level, comparison.max_abs, comparison.worst_index) == (None, math.inf, (0,))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
def test_integers_are_exact_at_every_level(dtype):
    top = np.iinfo(dtype).max
    a = np.array([[top, 5], [0, top - 1]], dtype)
    b = a.copy()
    assert compare(a, b).level == "exact"
    b[1, 1] = top
    comparison = compare(a, b, criteria=Judgement.parse("ultra"))
    assert (comparison.status, comparison.level, comparison.max_abs, comparison.worst_index) == (
        "mismatch",
        None,
        1,
        (1, 1),
    )
    assert (comparison.worst_expected, comparison.worst_actual, comparison.max_ulp) == (top - 1, top, None)


def test_the_widest_integer_difference_is_exact():
    lowest, highest = np.array([-(2**63)]), np.array([2**63 - 1])
    assert compare(lowest, highest).max_abs == 2**64 - 1


def test_an_index_off_by_one_does_not_hide_behind_a_relative_tolerance():
    assert tract_close_enough(np.array([5000]), np.array([5001]), "approximate")
    assert compare(np.array([5000]), np.array([5001])).status == "mismatch"


def test_booleans():
    a, b = np.array([True, False, True]), np.array([True, True, True])
    assert compare(a, a).level == "exact"
    comparison = compare(a, b)
    assert (comparison.level, comparison.worst_index, comparison.worst_expected, comparison.worst_actual) == (
        None,
        (1,),
        False,
        True,
    )


def test_dtype_and_shape_changes_fail_at_every_level():
    dtype = compare(np.ones(3, np.int64), np.ones(3, np.int32), criteria=Judgement.parse("ultra"))
    assert (dtype.status, dtype.level, dtype.problem) == ("mismatch", None, "dtype int32, expected int64")
    assert compare(np.ones(3, F32), np.ones(3, F64), criteria=Judgement.parse("ultra")).level is None
    shape = compare(np.ones((3, 1), F32), np.ones((1, 3), F32), criteria=Judgement.parse("ultra"))
    assert (shape.status, shape.problem) == ("mismatch", "shape [1, 3], expected [3, 1]")


def test_scalars_and_empty_arrays():
    scalar = compare(np.float32(2.0), np.float32(2.5))
    assert (scalar.shape, scalar.worst_index, scalar.max_abs) == ((), (), 0.5)
    empty = compare(np.zeros((0, 3), F32), np.zeros((0, 3), F32), criteria=Judgement.parse("exact"))
    assert (empty.status, empty.level, empty.worst_index) == ("pass", "exact", None)
    assert compare(np.zeros((0, 3), F32), np.zeros((3, 0), F32)).status == "mismatch"


def test_what_cannot_be_compared_is_a_mismatch_and_no_exception():
    values = np.array([1 + 2j])
    assert compare(values, values).problem == "dtype complex128 cannot be compared"
    assert compare(np.array(["a"]), np.array(["a"])).status == "mismatch"


def test_views_are_compared_by_their_elements():
    base = np.arange(24, dtype=F32).reshape(4, 6)
    changed = base.copy()
    changed[3, 1] += 1
    assert compare(base.T, changed.T).worst_index == (1, 3)


def test_worst_is_what_needs_the_most_tolerance_not_the_largest_difference():
    expected = np.array([1000.0, 0.0], F32)
    actual = np.array([1000.1, 0.01], F32)
    comparison = compare(expected, actual, criteria=Judgement.parse("approximate"))
    assert comparison.worst_index == (1,)
    assert comparison.max_abs == pytest.approx(0.1, rel=1e-3)


def test_missing_and_extra_outputs():
    vector, matrix = np.ones(2, F32), np.zeros((2, 3), F32)
    missing = compare_outputs([vector, matrix], [vector], names=["y", "state"])
    assert [(o.name, o.status) for o in missing] == [("y", "pass"), ("state", "mismatch")]
    assert missing[1].problem == "missing output: 1 came, expected 2"
    extra = compare_outputs([vector], [vector, matrix])
    assert (extra[1].name, extra[1].problem) == ("output_1", "extra output: 2 came, expected 1")


def test_time_is_linear_and_ten_million_elements_take_about_a_second():
    expected, actual = noisy((10_000_000,), F32, 1e-3)
    start = time.perf_counter()
    compare(expected, actual)
    # A busy machine with two cores gets some room; a comparison that copies per level takes longer than this.
    assert time.perf_counter() - start < 4


@pytest.mark.parametrize(("part", "share"), [(1.0, "100 %"), (5 / 6, "83.3 %"), (1e-4, "0.01 %")])
def test_the_share_that_is_not_finite_is_a_plain_number(part: float, share: str) -> None:
    (comparison,) = compare_outputs([np.ones(2, F32)], [np.ones(2, F32)], names=["y"])
    assert replace(comparison, not_finite=part).note == f"y is NaN or infinite in {share} of its elements"
