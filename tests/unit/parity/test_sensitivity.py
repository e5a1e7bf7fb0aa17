"""An output that one constant would pass for is weak."""

from __future__ import annotations

import numpy as np
import pytest

from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.samples import Sample
from t2n_core.parity.sensitivity import Sensitivity, sensitivities


def sensitivity_of(*outputs: np.ndarray, level: str = "approximate", constant: tuple[str, ...] = ()) -> Sensitivity:
    samples = [Sample((), (np.asarray(output),)) for output in outputs]
    (sensitivity,) = sensitivities(samples, ["y"], Judgement.parse(level), constant)
    return sensitivity


RNG = np.random.default_rng(3)
FIRST, SECOND = (RNG.standard_normal((3, 5)).astype(np.float32) for _ in range(2))


def test_an_output_that_moves_is_not_weak():
    sensitivity = sensitivity_of(FIRST, SECOND)
    assert sensitivity.weak == ""
    assert sensitivity.largest == pytest.approx(np.abs(FIRST - SECOND).max())
    assert sensitivity.share == 1.0


@pytest.mark.parametrize("scale", [0.0, 1e-5])
def test_what_stays_within_the_tolerance_is_weak(scale):
    assert "within `approximate`" in sensitivity_of(FIRST * np.float32(scale), SECOND * np.float32(scale)).weak


def test_a_constant_between_the_samples_is_tried():
    small = np.full((3, 5), 0.04, np.float32)
    assert sensitivity_of(small, -small, level="approximate").weak == ""
    assert sensitivity_of(small, -small, level="very").weak


def test_integers_are_weak_only_if_they_are_equal():
    assert sensitivity_of(np.array([1, 2, 3]), np.array([1, 2, 3]), level="ultra").weak
    assert not sensitivity_of(np.array([1, 2, 3]), np.array([1, 2, 4]), level="approximate").weak


def test_nan_and_infinities_in_the_same_places_do_not_move():
    assert sensitivity_of(np.full(4, np.nan, np.float32), np.full(4, np.nan, np.float32)).weak
    assert sensitivity_of(np.full(4, -np.inf, np.float32), np.full(4, -np.inf, np.float32)).weak


def test_one_sample_and_no_elements_are_named():
    assert "one set of inputs" in sensitivity_of(FIRST).weak
    assert "one set of inputs" in sensitivity_of(FIRST, SECOND[:2]).weak
    assert "no elements" in sensitivity_of(FIRST[:0], SECOND[:0]).weak


def test_a_constant_output_need_not_move_beside_one_that_depends_on_inputs():
    samples = [Sample((), (FIRST, moving)) for moving in (FIRST, SECOND)]
    criteria = Judgement.parse("approximate")
    assert [sensitivity.weak for sensitivity in sensitivities(samples, ["y", "z"], criteria, {"y"})] == ["", ""]
    assert sensitivities(samples, ["y", "z"], criteria, {"z"})[0].weak
    assert sensitivity_of(FIRST, FIRST, constant=("y",)).weak == "depends on no input"


def test_samples_with_infinities_among_their_inputs_do_not_count():
    infinite = FIRST.copy()
    infinite[0, 0] = np.inf
    samples = [Sample((x,), (x > 1e4,)) for x in (FIRST, SECOND, infinite)]
    criteria = Judgement.parse("approximate")
    assert sensitivities(samples, ["y"], criteria)[0].weak
    assert not sensitivities(samples, ["y"], criteria, strays=True)[0].weak
    assert not sensitivities(samples[2:] + samples[:1], ["y"], criteria)[0].weak, "the example has them too"


def test_the_share_of_nan_and_infinities_is_that_of_samples_with_finite_inputs():
    half = np.where(np.arange(15).reshape(3, 5) % 3 == 0, np.float32("inf"), FIRST)
    samples = [Sample((FIRST,), (array,)) for array in (half, SECOND)]
    samples.append(Sample((np.full_like(FIRST, np.nan),), (np.full_like(FIRST, np.nan),)))
    assert sensitivities(samples, ["y"], Judgement.parse("close"))[0].not_finite == 5 / 30
    assert sensitivity_of(np.arange(3), np.arange(3) + 1).not_finite == 0
