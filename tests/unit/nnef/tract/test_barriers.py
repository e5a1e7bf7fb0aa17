"""The operation that stands for a barrier in each release."""

from __future__ import annotations

import pytest

from t2n_core.nnef.graph import FLOAT32
from t2n_core.nnef.sizes.dims import symbol
from t2n_core.nnef.spec import spec_for
from t2n_core.nnef.tract.barriers import barrier
from t2n_core.nnef.tract.emitter import TractEmitter


@pytest.mark.parametrize(("version", "operator"), [("0.19.15", "tract_core_gather"), ("0.20.0", "tract_core_trilu")])
@pytest.mark.parametrize("shape", [(3, 5), (1, 7), (symbol("T"), 4)])
def test_a_barrier_keeps_all_elements(version: str, operator: str, shape: tuple[int, ...]) -> None:
    g = TractEmitter(spec_for("tract", version))
    kept = barrier(g, g.external("x", shape, FLOAT32))
    assert kept.producer is not None
    assert kept.producer.name == operator
    assert (kept.shape, kept.dtype) == (shape, FLOAT32)
