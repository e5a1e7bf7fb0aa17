"""The emitter: its attributes are operators of the target, and it writes no more statements than a value needs."""

from __future__ import annotations

import numpy as np
import pytest

from t2n_core.errors import LowerError
from t2n_core.nnef.dat import ArrayWeight
from t2n_core.nnef.dialects import emitter_for
from t2n_core.nnef.graph import FLOAT32
from t2n_core.nnef.spec import spec_for
from tests.releases import NEWEST


@pytest.mark.parametrize(("target", "version"), [("tract", "0.23.9"), ("khronos", "1.0.5")])
def test_a_misspelt_attribute_is_an_error(target: str, version: str) -> None:
    g = emitter_for(spec_for(target, version))
    assert callable(g.matmul)
    with pytest.raises(AttributeError, match=r"has no attribute or operator `matmull`; did you mean `matmul`"):
        _ = g.matmull
    with pytest.raises(AttributeError, match="has no attribute or operator `rows_overun`"):
        _ = g.rows_overun


def test_transposes_that_follow_each_other_are_one() -> None:
    g = emitter_for(spec_for("tract", NEWEST))
    x = g.external("x", (2, 3, 5), FLOAT32)
    turned = g.permute(x, [1, 2, 0])
    assert g.permute(turned, [2, 0, 1]) is x
    swapped = g.permute(turned, [1, 0, 2])
    assert swapped.shape == (5, 3, 2)
    assert swapped.producer is not None
    assert list(swapped.producer.inputs()) == [x]
    assert swapped.producer.arguments["axes"] == [2, 1, 0]


def test_a_label_is_one_variable_and_of_one_shape() -> None:
    g = emitter_for(spec_for("tract", NEWEST))
    row = g.variable("row", ArrayWeight(np.zeros(3, np.float32)))
    assert g.variable("row", ArrayWeight(np.zeros(3, np.float32))) is row
    with pytest.raises(LowerError, match="two variables have the label row"):
        g.variable("row", ArrayWeight(np.zeros((1, 3), np.float32)))
