"""What each release computes from constants before the first run."""

from __future__ import annotations

import math

import numpy as np
import pytest
from packaging.version import Version

from t2n_core.inference_target import KhronosNNEF, TractNNEF
from t2n_core.nnef.dat import ArrayWeight
from t2n_core.nnef.graph import FLOAT16, FLOAT32, Operation, Value
from t2n_core.nnef.spec import spec_for
from t2n_core.nnef.tract.constants import BARRIERS, SCANS_REPACK, is_constant, is_folded
from t2n_core.nnef.tract.emitter import TractEmitter
from tests.releases import NEWEST


def made_of(*sources: Value, operator: str = "add") -> Value:
    value = Value("v", np.dtype(np.float32), (2,))
    value.producer = Operation(operator, dict(zip("xy", sources, strict=False)), (value,), None)
    return value


def weight() -> Value:
    return Value("w", np.dtype(np.float32), (2,), weight=ArrayWeight(np.zeros(2, np.float32)))


def test_a_constant_is_computed_from_weights_alone() -> None:
    holds = is_constant()
    both = made_of(weight(), weight())
    assert holds(weight())
    assert holds(made_of(both, weight()))
    graph_input = Value("x", np.dtype(np.float32), (2,))
    assert not holds(graph_input)
    assert not holds(made_of(both, graph_input))


def test_what_is_made_of_nothing_is_no_constant() -> None:
    assert not is_constant()(made_of())


def test_nothing_is_folded_after_a_barrier() -> None:
    assert is_folded()(weight())
    for operator in BARRIERS:
        fenced = made_of(weight(), operator=operator)
        assert is_constant()(fenced)
        assert not is_folded()(made_of(fenced, weight()))


@pytest.mark.parametrize(
    ("version", "elements", "pieces"),
    [
        ("0.22.4", (1 << 20) + 1, 1),
        ("0.23.0", 1 << 18, 1),
        ("0.23.0", (1 << 18) + 1, 2),
        ("0.23.4", (1 << 18) + 1, 2),
        ("0.23.5", 1 << 20, 1),
        ("0.23.5", (1 << 20) + 1, 2),
        (NEWEST, (5 << 18) + 7, 2),
    ],
)
def test_large_weights_are_widened_in_pieces_that_are_computed_once(version: str, elements: int, pieces: int) -> None:
    g = TractEmitter(spec_for("tract", version))
    wide = g.cast(g.variable("w", ArrayWeight(np.zeros(elements, FLOAT16))), FLOAT32)
    casts = [o.outputs[0] for o in g.graph.operations if o.name == "tract_core_cast"]
    assert wide.shape == (elements,)
    assert len(casts) == pieces
    assert sum(math.prod(map(int, cast.shape)) for cast in casts) == elements


@pytest.mark.parametrize(
    ("version", "keeps"), [("0.21.10", False), ("0.21.11", True), ("0.23.4", True), ("0.23.5", False)]
)
def test_norms_stay_apart_from_large_filters_that_every_run_would_compute(version: str, keeps: bool) -> None:
    target = TractNNEF(version)
    assert target.folds_norm(1024, 1 << 20) != keeps
    assert target.folds_norm(1023, 1 << 20)
    assert target.folds_norm(1024, (1 << 20) - 1)
    assert KhronosNNEF().folds_norm(1024, 1 << 20)


def test_releases_whose_scans_repack_computed_weights() -> None:
    flags = [Version(text) in SCANS_REPACK for text in ("0.20.22", "0.21.0", "0.22.4", "0.23.0")]
    assert flags == [False, True, True, False]
