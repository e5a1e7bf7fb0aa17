"""Convolutions that may take an operand of later arithmetic into their kernel and bias."""

from __future__ import annotations

import time

import numpy as np
import pytest

from t2n_core.nnef.dat import ArrayWeight
from t2n_core.nnef.graph import FLOAT32, Value
from t2n_core.nnef.spec import spec_for
from t2n_core.nnef.tract.emitter import TractEmitter
from tests.releases import NEWEST


def emitter_with_convolution() -> tuple[TractEmitter, Value]:
    g = TractEmitter(spec_for("tract", NEWEST))
    weight = g.variable("w", ArrayWeight(np.ones((3, 2, 4), np.float32)))
    x = g.external("x", (1, 2, 9), FLOAT32)
    return g, g.conv(x, weight, padding=[(0, 0)], stride=[1], dilation=[1], border="constant", groups=1)


@pytest.mark.parametrize(
    ("shape", "operator"), [((1, 3, 1), "add"), ((1, 3, 6), "sub"), ((1, 1, 1), "sub"), ((1, 1, 6), "sub")]
)
def test_only_a_value_of_each_channel_is_subtracted_as_a_sum(shape: tuple[int, ...], operator: str) -> None:
    g, result = emitter_with_convolution()
    difference = g.sub(g.external("level", shape, FLOAT32), result)
    assert difference.producer is not None
    assert difference.producer.name == operator


def test_a_long_chain_is_searched_once() -> None:
    g, result = emitter_with_convolution()
    for _ in range(60):
        result = g.add(g.mul(result, result), result)
    start = time.process_time()
    g.sub(g.external("level", (1, 3, 1), FLOAT32), result)
    assert time.process_time() - start < 1
