"""Random inputs stay valid for the model, and have spread where the example has none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from t2n_core.check.sampling.draws import Distribution, Draws


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def drawn(
    example: Any, shape: Sequence[int], rng: np.random.Generator, distribution: Distribution = Distribution.ALIKE
) -> Any:
    (array,) = Draws([example], lambda _: True).draw([tuple(shape)], rng, distribution)
    return array


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_are_distributed_like_the_example(rng, dtype):
    example = (rng.standard_normal((5, 70)) * 3 + 1).astype(dtype)
    values = drawn(example, (31, 101), rng)
    assert (values.dtype, values.shape) == (example.dtype, (31, 101))
    assert abs(float(values.mean()) - float(example.mean())) < 0.2
    assert 3 < float(values.astype(np.float64).std()) < 5
    assert values.min() < example.min() < 0 < example.max() < values.max()
    gentle = drawn(example, (31, 101), rng, Distribution.GENTLE)
    assert example.min() <= gentle.min() < 0 < gentle.max() <= example.max()


def test_floats_of_one_sign_keep_it_unless_they_are_drawn_signed(rng):
    example = rng.random((4, 50)).astype(np.float32)
    assert (drawn(example, (4, 50), rng) >= 0).all()
    signed = drawn(example, (4, 50), rng, Distribution.SIGNED)
    assert signed.sum() < 0 < signed.max()
    assert Draws([example], lambda _: True).has_one_sign
    assert not Draws([example - 0.5], lambda _: True).has_one_sign


def test_half_floats_never_overflow(rng):
    example = np.array([65504.0, -65504.0, 60000.0, 1.0], np.float16)
    for distribution in set(Distribution) - {Distribution.SPECIAL}:
        assert np.isfinite(drawn(example, (1000,), rng, distribution)).all()


def test_what_is_not_finite_in_the_example_does_not_spread(rng):
    assert np.isfinite(drawn(np.array([np.inf, 1, 2, 3], np.float32), (50,), rng)).all()
    assert np.isfinite(drawn(np.array([np.nan], np.float32), (50,), rng)).all()


@pytest.mark.parametrize("constant", [0.0, 1.0, -7.5])
def test_constant_floats_become_signed_ones_of_scale_one(rng, constant):
    values = drawn(np.full(20, constant, np.float32), (500,), rng)
    assert 0.8 < values.std() < 1.2
    assert abs(values.mean()) < 0.2
    gentle = drawn(np.full(20, constant, np.float32), (500,), rng, Distribution.GENTLE)
    assert not constant or (np.sign(gentle) == np.sign(constant)).all()
    assert (drawn(np.full(20, constant, np.float32), (5,), rng, Distribution.OWN) == constant).all()


@pytest.mark.parametrize("fill", [True, False])
def test_a_mask_of_one_value_gets_both_in_each_row(rng, fill):
    mask = drawn(np.full((3, 7), fill), (40, 9), rng)
    assert mask.dtype == np.bool_
    assert mask.any(-1).all()
    assert not mask.all(-1).any()


def test_gentle_masks_are_lengths(rng):
    mask = drawn(np.ones((3, 7), np.int64), (40, 9), rng, Distribution.GENTLE)
    assert set(np.unique(mask)) == {0, 1}
    assert (mask[:, 0] == 1).all()
    assert (np.diff(mask, axis=-1) <= 0).all()


def test_float_masks_keep_their_two_values(rng):
    mask = np.array([[0.0, -np.inf, -np.inf]], np.float32)
    values = drawn(mask, (7, 9), rng)
    assert set(np.unique(values)) == {0.0, -np.inf}
    assert (values == 0).any(-1).all()


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8])
def test_integers_are_drawn_from_the_examples_values(rng, dtype):
    example = np.array([[3, 0, 9]]).astype(dtype)
    values = drawn(example, (40, 5), rng)
    assert values.dtype == dtype
    assert set(np.unique(values)) == {0, 3, 9}


def test_integers_of_the_same_shape_are_permuted_so_that_no_row_gets_ties(rng):
    example = np.stack([rng.permutation(9) for _ in range(5)])
    values = drawn(example, (5, 9), rng)
    assert not np.array_equal(values, example)
    assert all(sorted(row) == list(range(9)) for row in values)


@pytest.mark.parametrize("step", [1, -1])
def test_sorted_integers_stay_sorted(rng, step):
    example = np.array([2, 4, 9, 11, 30])[::step]
    values = drawn(example, (5,), rng)
    assert (np.diff(values) * step >= 0).all()


def test_indices_go_up_to_what_the_model_takes(rng):
    tokens = np.zeros((2, 7), np.int64)

    def runs(arrays: Sequence[Any]) -> bool:
        return bool(arrays[0].max() < 50)

    (indices,) = Draws([tokens], runs).draw([(20, 30)], rng)
    assert indices.min() == 0
    assert 12 < indices.max() < 50


def test_a_negative_constant_may_be_the_only_one_that_the_model_takes(rng):
    (values,) = Draws([np.array([-3])], lambda _: False).draw([(200,)], rng)
    assert set(np.unique(values)) == {-3, -2, -1, 0}


def test_lengths_stay_between_one_and_the_size_of_their_axis(rng):
    frames, lengths = np.zeros((3, 7, 4), np.float32), np.array([7, 7, 7])
    draws = Draws([frames, lengths], lambda _: True)
    samples = [draws.draw([(3, size, 4), (3,)], rng)[1] for size in (7, 2, 30) for _ in range(20)]
    for size, part in zip((7, 2, 30), (samples[:20], samples[20:40], samples[40:]), strict=True):
        assert min(map(min, part)) == 1
        assert max(map(max, part)) == size
        assert all((np.diff(sample) <= 0).all() for sample in part)


def test_scalars_and_empty_examples(rng):
    assert drawn(np.array(3), (), rng, Distribution.OWN) == 3
    assert 1 <= drawn(np.array(2.0), (), rng) <= 3
    values = drawn(np.zeros((0, 4), np.float32), (2, 4), rng)
    assert values.dtype == np.float32
    assert len(np.unique(values)) == 8
    assert not drawn(np.zeros((0, 4), np.int64), (2, 4), rng).any()


def test_the_same_seed_draws_the_same():
    example = np.arange(6, dtype=np.float32)
    first, second = (drawn(example, (4, 3), np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
