"""Properties of values by which operations are written."""

from __future__ import annotations

import numpy as np
import pytest

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


@pytest.mark.parametrize(
    ("before", "after", "kernel", "groups", "moved"),
    [
        ((2, 3, 4, 5), (6, 4, 5), (8, 4, 1), 1, True),
        ((2, 3, 4, 5), (2, 12, 5), (8, 12, 1), 1, False),
        ((2, 4, 15), (2, 4, 3, 5), (8, 4, 1, 1), 1, False),
        ((2, 4, 3, 5), (2, 4, 15), (8, 4, 1), 1, True),
        ((2, 4, 3, 5), (2, 4, 15), (8, 4, 3), 1, False),
        ((2, 4, 3, 5), (2, 4, 15), (8, 2, 1), 2, False),
    ],
    ids=["rows", "channels", "split", "places", "window", "groups"],
)
def test_a_reshape_moves_after_a_convolution_that_is_a_product_of_what_it_merges(
    before: tuple[int, ...], after: tuple[int, ...], kernel: tuple[int, ...], groups: int, moved: bool
) -> None:
    g = TractEmitter(spec_for("tract", "0.21.19"))
    x = g.reshape_to(g.external("x", before, FLOAT32), after)
    y = g.conv(x, g.constant(np.ones(kernel, np.float32)), padding=[(0, 0)] * (len(kernel) - 2), groups=groups)
    assert g.facts.is_after_reshape(y) == moved


def test_a_convolution_without_groups_has_one() -> None:
    g = TractEmitter(spec_for("tract", "0.21.19"))
    x = g.reshape_to(g.external("x", (2, 3, 4, 5), FLOAT32), (6, 4, 5))
    y = g.conv(x, g.constant(np.ones((8, 4, 1), np.float32)), padding=[(0, 0)])
    assert g.facts.is_after_reshape(y)
