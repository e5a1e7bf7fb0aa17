"""The level `float16`: errors in units of the output, against float64."""

from __future__ import annotations

import math

import numpy as np
import pytest

from t2n_core.parity.judging.float16_level import peak, rms
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.judging.metrics import indifferences, measure
from t2n_core.parity.samples import Sample

TRUE = np.array([1.0, -2.0, 4.0, -8.0])
NEAR = np.array([1.0, -1.92, 4.0, -8.0])
CASES = {
    "equal": (TRUE, TRUE, 0.0),
    "in units of the largest": (TRUE, NEAR, 0.01),
    "free of scale": (1e-9 * TRUE, 1e-9 * NEAR, 0.01),
    "zeros for small numbers": (1e-9 * TRUE, 0 * TRUE, 1.0),
    "zeros for zeros": (0 * TRUE, 0 * TRUE, 0.0),
    "something for zeros": (0 * TRUE, 1e-9 * TRUE, math.inf),
    "NaN": (TRUE, np.array([1.0, np.nan, 4.0, -8.0]), math.inf),
    "NaN for NaN": (np.array([np.nan, 2.0]), np.array([np.nan, 2.0]), 0.0),
    "infinity": (TRUE, np.array([1.0, -2.0, 4.0, -np.inf]), math.inf),
    "other infinity": (np.array([np.inf, 2.0]), np.array([-np.inf, 2.0]), math.inf),
    "integers": (np.array([1, 2]), np.array([1, 2]), 0.0),
    "other integers": (np.array([1, 2]), np.array([1, 3]), math.inf),
    "nothing": (TRUE[:0], TRUE[:0], 0.0),
}


@pytest.mark.parametrize("name", list(CASES))
def test_the_largest_error_is_in_units_of_the_largest_number(name: str) -> None:
    expected, actual, expected_peak = CASES[name]
    assert peak([TRUE, expected], [TRUE, actual]) == pytest.approx(expected_peak)


def test_the_mean_error_is_in_units_of_the_spread() -> None:
    assert rms([TRUE + 100], [TRUE + 100.5]) == pytest.approx(0.5 / TRUE.std())
    assert rms([np.ones(3)], [np.full(3, 1.5)]) == 0.5, "of a constant, in units of its size"


def test_it_is_a_level_of_its_own() -> None:
    judged = Judgement.of("Float16")
    assert judged.in_float64
    assert not judged.elementwise
    assert Judgement.parse("float16") == judged
    assert [(metric.name, metric.required) for metric in judged.metrics] == [("peak", "<= 0.005"), ("rms", "")]
    assert Judgement.of("float16", atol=0.1).in_float64


def test_metrics_take_the_outputs_in_float64() -> None:
    judged = Judgement.of("float16")
    half = [array.astype(np.float16) for array in (1e-9 * TRUE, 3e-9 * TRUE)]
    samples = [
        Sample((), (array,), original=(true,)) for array, true in zip(half, (1e-9 * TRUE, 3e-9 * TRUE), strict=True)
    ]
    results = measure(judged.metrics, samples, [[array] for array in half], indifferences(judged.metrics, samples))
    assert [(result.value, result.passed) for result in results] == [(1.0, False), (pytest.approx(1.0, abs=0.2), True)]
    plain = [Sample((), sample.expected) for sample in samples]
    assert measure(judged.metrics, plain, [[array] for array in half], {})[0].value == 0, "zeros for zeros"


def test_what_accepts_other_outputs_is_weak() -> None:
    judged = Judgement.of("float16")
    samples = [Sample((), (TRUE,), original=(TRUE * scale,)) for scale in (1, 1.001)]
    assert indifferences(judged.metrics, samples) == {"peak": "accepts the outputs of other inputs too"}
