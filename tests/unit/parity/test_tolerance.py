"""The ladder against the numbers of tract's source, and tract's formula against cases worked out by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from t2n_core.errors import InputError
from t2n_core.parity.tolerance import LEVELS, Bounds, TractCheckTolerance, bounds_of
from tests.unit.parity.tract_formula import tract_close_enough

F16, F32, F64, I64 = np.float16, np.float32, np.float64, np.int64


@pytest.mark.parametrize(
    ("level", "dtype", "bounds"),
    [
        ("exact", F32, Bounds(0, 0, 0)),
        ("close", F32, Bounds(1e-7, 1e-7, 0)),
        ("close", F16, Bounds(1e-3, 1e-3, 0)),
        ("approximate", F32, Bounds(1e-4, 5e-4, 0)),
        ("approximate", F16, Bounds(1e-3, 5e-3, 0)),
        ("approximate", I64, Bounds(1e-4, 5e-4, 0)),
        ("very", F16, Bounds(5e-2, 1e-2, 0)),
        ("super", F32, Bounds(0.1, 0.05, 1e-4)),
        ("ultra", F64, Bounds(0.2, 0.1, 5e-4)),
    ],
)
def test_bounds(level, dtype, bounds):
    assert bounds_of(level, dtype) == bounds


def test_names_in_any_case():
    assert TractCheckTolerance("CLOSE") is TractCheckTolerance.CLOSE
    assert TractCheckTolerance.parse(" Super ") is TractCheckTolerance.SUPER
    with pytest.raises(InputError, match="exact, close, approximate, very, super, ultra"):
        TractCheckTolerance.parse("closer")


def test_tighter_levels_are_smaller():
    assert sorted({*LEVELS}) == list(LEVELS)
    assert TractCheckTolerance.APPROXIMATE < TractCheckTolerance.VERY, "not the order of the words"
    assert TractCheckTolerance.EXACT <= TractCheckTolerance.EXACT
    assert max(TractCheckTolerance.CLOSE, TractCheckTolerance.SUPER) == "super"


def test_each_level_contains_the_one_before():
    for dtype in (F16, F32, F64):
        ladder = [bounds_of(level, dtype) for level in LEVELS]
        for tight, loose in pairwise(ladder):
            assert (tight.atol, tight.rtol, tight.outliers) <= (loose.atol, loose.rtol, loose.outliers)
            assert tight.rtol <= loose.rtol


@pytest.mark.parametrize(
    ("expected", "actual", "level", "answer"),
    [
        ([1.0], [1.0 + 1e-7], "close", True),
        ([1.0], [1.001], "approximate", False),
        ([1.0], [1.0005], "approximate", True),
        ([np.nan], [np.nan], "exact", True),
        ([np.nan], [1.0], "ultra", False),
        ([np.inf], [np.inf], "exact", True),
        ([1.0], [np.inf], "close", True),  # the hole: rtol * inf is infinite
        ([np.inf], [-np.inf], "approximate", True),  # the same
        ([np.inf], [1.0], "ultra", False),
        ([np.inf], [-np.inf], "exact", False),
    ],
)
def test_tracts_formula(expected, actual, level, answer):
    assert tract_close_enough(np.array(expected, F32), np.array(actual, F32), level) is answer


def test_tract_rounds_large_integers_and_forgives_dtypes():
    big = np.array([2**53], I64)
    assert tract_close_enough(big, big + 1, "exact")
    assert tract_close_enough(np.ones(3, F32), np.ones(3, F64), "exact")
    assert not tract_close_enough(np.ones(3, F32), np.ones((1, 3), F32), "ultra")


def test_tract_measures_f32_against_f16_by_the_bounds_of_f16():
    expected, actual = np.array([1.0], F32), np.array([1.0009766], F16)
    assert tract_close_enough(expected, actual, "close")
    assert not tract_close_enough(expected, actual, "close", allow_float_casts=False)


def test_outliers_are_a_share():
    expected, actual = np.zeros(10_000, F32), np.zeros(10_000, F32)
    actual[:1] = 5
    assert tract_close_enough(expected, actual, "super")
    actual[:2] = 5
    assert not tract_close_enough(expected, actual, "super")
    assert tract_close_enough(expected, actual, "ultra")
