"""Properties of values by which operations are written."""

from __future__ import annotations

import numpy as np

from t2n_core.nnef.graph import FLOAT32
from t2n_core.nnef.spec import spec_for
from t2n_core.nnef.tract.emitter import TractEmitter


def test_a_reshape_of_the_input_reaches_readers() -> None:
    g = TractEmitter(spec_for("tract", "0.21.19"))
    x = g.external("x", (2, 12, 5), FLOAT32)
    turned = g.tanh(g.reshape_to(x, (2, 3, 4, 5)))
    assert g.facts.is_after_reshape(turned)
    assert not g.facts.is_after_reshape(g.tanh(x))


def test_a_reshape_of_weights_is_over_before_readers_move() -> None:
    g = TractEmitter(spec_for("tract", "0.21.19"))
    x = g.external("x", (2, 3, 7), FLOAT32)
    weight = g.reshape_to(g.constant(np.ones((4, 6), np.float32)), (4, 3, 2))
    y = g.conv(x, weight, padding=[(0, 0)])
    assert not g.facts.is_after_reshape(y)
