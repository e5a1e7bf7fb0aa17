"""The level of a transform that is not given one."""

from __future__ import annotations

import numpy as np
import pytest

from t2n_core.check.transforms.level import default_judgement
from t2n_core.engine.tract.transforms.transform import transforms_from
from t2n_core.parity.judging.judgement import Judgement

OWN = Judgement.of("close")


@pytest.mark.parametrize("names", ["round_trip", "conv_nhwc,transformers_detect_all"])
def test_an_exact_transform_has_the_level_of_the_check(names: str) -> None:
    assert default_judgement(transforms_from(names), OWN) is OWN


def test_float16_is_compared_with_float64() -> None:
    judged = default_judgement(transforms_from("round_trip,f32_to_f16"), OWN)
    (metric,) = judged.metrics
    assert (metric.name, metric.bound, judged.elementwise, judged.in_float64) == ("peak", 0.02, False, True)


@pytest.mark.parametrize(
    ("names", "bound"), [("quantize_kv_storage", 0.05), ("f32_to_f16,block_quant", 0.3), ("block_quant", 0.3)]
)
def test_the_coarsest_of_several_decides(names: str, bound: float) -> None:
    judged = default_judgement(transforms_from(names), OWN)
    (metric,) = judged.metrics
    assert (metric.name, metric.bound, judged.elementwise) == ("rms", bound, False)


def test_outputs_of_other_inputs_are_beyond_every_bound() -> None:
    draw = np.random.default_rng(3).standard_normal
    (metric,) = default_judgement(transforms_from("block_quant"), OWN).metrics
    assert not metric.holds(metric.function([draw((5, 7))], [draw((5, 7))]))
    assert not metric.holds(metric.function([draw((5, 7))], [np.zeros((5, 7))]))
