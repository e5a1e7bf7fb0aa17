"""Inputs of other sizes stay valid, and the sizes tried are the ones that find a baked-in size."""

from __future__ import annotations

import numpy as np
import pytest

from t2n_core.check.samples import resized_input, size_assignments
from t2n_core.errors import InputError


@pytest.fixture
def rng():
    return np.random.default_rng(11)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_keep_mean_and_deviation_and_both_signs(rng, dtype):
    example = (rng.standard_normal((5, 70)) * 3 + 1).astype(dtype)
    drawn = resized_input(example, (31, 101), rng)
    assert (drawn.dtype, drawn.shape) == (example.dtype, (31, 101))
    assert np.isfinite(drawn).all()
    assert abs(float(drawn.mean()) - 1) < 0.5
    assert 2.5 < float(drawn.astype(np.float64).std()) < 3.5
    assert (drawn < 0).any()
    assert (drawn > 0).any()


def test_half_floats_never_overflow(rng):
    example = np.array([65504.0, -65504.0, 60000.0, 1.0], np.float16)
    assert np.isfinite(resized_input(example, (1000,), rng)).all()


def test_what_is_not_finite_in_the_example_does_not_spread(rng):
    assert np.isfinite(resized_input(np.array([np.inf, 1, 2, 3], np.float32), (50,), rng)).all()
    assert np.isfinite(resized_input(np.array([np.nan], np.float32), (50,), rng)).all()


def test_a_constant_example_does_not_stay_constant(rng):
    assert resized_input(np.zeros(2, np.float32), (50,), rng).std() > 0.5


def test_masks_stay_masks(rng):
    mask = np.array([[0.0, 1.0, 1.0]], np.float32)
    assert set(np.unique(resized_input(mask, (7, 9), rng))) == {0.0, 1.0}


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.bool_])
def test_integers_are_drawn_from_the_examples_values(rng, dtype):
    example = np.array([[3, 0, 9]]).astype(dtype)
    drawn = resized_input(example, (40, 5), rng)
    assert drawn.dtype == dtype
    assert set(np.unique(drawn)) <= set(np.unique(example))


def test_scalars_and_empty_examples(rng):
    assert resized_input(np.array(3), (), rng) == 3
    drawn = resized_input(np.zeros((0, 4), np.float32), (2, 4), rng)
    assert drawn.dtype == np.float32
    assert len(np.unique(drawn)) == 8
    assert not resized_input(np.zeros((0, 4), np.int64), (2, 4), rng).any()


def test_the_same_seed_draws_the_same():
    example = np.arange(6, dtype=np.float32)
    first, second = (resized_input(example, (4, 3), np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_one_symbol():
    sizes = size_assignments({"T": 50})
    assert sizes == [{"T": 50}, {"T": 1}, {"T": 53}, {"T": 101}, {"T": 64}]


def test_edges_are_tried_alone():
    sizes = size_assignments({"B": 2, "T": 10}, None, {"T": [15, 16, 17]})
    assert [one for one in sizes if one["T"] in (15, 16, 17)] == [
        {"B": 2, "T": 16},
        {"B": 2, "T": 15},
        {"B": 2, "T": 17},
    ]


@pytest.mark.parametrize("traced", [1, 2, 7, 9, 64, 65, 1001])
def test_even_and_odd_sizes_are_among_them(traced):
    sizes = [one["T"] for one in size_assignments({"T": traced})]
    assert {size % 2 for size in sizes[1:]} == {0, 1}


def test_the_smallest_size_may_be_zero():
    assert {"P": 0} in size_assignments({"P": 5}, {"P": (0, None)})


def test_two_symbols_alone_and_together_with_different_sizes():
    sizes = size_assignments({"B": 2, "T": 10})
    assert sizes[0] == {"B": 2, "T": 10}
    assert {"B": 1, "T": 10} in sizes
    assert {"B": 2, "T": 1} in sizes
    assert {"B": 1, "T": 1} in sizes
    together = [one for one in sizes if one["B"] not in (1, 2) and one["T"] not in (1, 10)]
    assert len(together) == 2
    assert all(one["B"] != one["T"] for one in together)


@pytest.mark.parametrize("traced", [1, 2, 3, 16, 97, 16000])
def test_three_sizes_besides_the_traced_one_and_one_among_them(traced):
    sizes = [one["T"] for one in size_assignments({"T": traced})]
    assert sizes[0] == traced
    assert 1 in sizes
    assert len([size for size in sizes if size > traced and size % 2]) >= 2


@pytest.mark.parametrize(
    ("limits", "least"), [((4, None), 5), ((None, 12), 4), ((8, 12), 4), ((10, 11), 2), ((10, 10), 1)]
)
def test_limits_are_respected(limits, least):
    sizes = [one["T"] for one in size_assignments({"T": 10}, {"T": limits})]
    assert len(sizes) == least
    assert len(set(sizes)) == least
    assert all((limits[0] or 1) <= size <= (limits[1] or 10**9) for size in sizes)


def test_a_traced_size_outside_of_its_limits_is_an_error():
    with pytest.raises(InputError, match="traced at 3, outside of its limits 4"):
        size_assignments({"T": 3}, {"T": (4, None)})


def test_nothing_varies():
    assert size_assignments({}) == []
