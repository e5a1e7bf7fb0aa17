"""What metrics compare with: the model's own weights, or the weights as the archive stores them, on a real engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from t2n_core import ExportResult, ModelExport, TractNNEF
from t2n_core.parity.outcome import Status
from tests.releases import NEWEST

LOSS = {"float16": (1e-5, 1e-3), "int8": (1e-3, 2e-2), "q4_0": (2e-2, 2e-1)}
"""What each format loses of outputs of order one."""


def largest(expected: Sequence[Any], actual: Sequence[Any]) -> float:
    return max(float(np.abs(a - b).max()) for a, b in zip(expected, actual, strict=True))


def small(format: str, path: Path, **more: Any) -> tuple[nn.Module, torch.Tensor, ExportResult]:
    """Return a model with inputs of it, and its archive with weights of a format."""
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(64, 96), nn.Tanh(), nn.Linear(96, 32)).eval(), torch.randn(3, 64)
    return model, x, ModelExport(model, x).to(TractNNEF(NEWEST, weights=format, check_io=False, **more), path / "m.tar")


@pytest.mark.parametrize("format", list(LOSS))
def test_a_metric_measures_what_stored_weights_lose(format: str, tmp_path: Path) -> None:
    model, x, result = small(format, tmp_path)
    seen: list[Any] = []

    def loss(expected: Sequence[Any], actual: Sequence[Any]) -> float:
        seen.append(expected[0])
        return largest(expected, actual)

    low, high = LOSS[format]
    (metric,) = result.assert_parity(metric=loss, bound=high).metrics
    assert low < metric.value < high
    assert metric.reference == "the model's own weights"
    with torch.no_grad():
        assert any(output.shape == (3, 32) and np.array_equal(output, model(x).numpy()) for output in seen)
    outcome = result.assert_parity(metric=largest, bound=1e-5, reference="stored")
    assert outcome.metrics[0].value < 1e-5
    assert outcome.metrics[0].reference == "the weights as stored"
    assert outcome.facts["stored_weights"] == f"2 as {format}"


def test_a_metric_beyond_its_bound_says_what_storing_costs(tmp_path: Path) -> None:
    """A level beside the metric is still about the weights of the archive."""
    _, _, result = small("q4_0", tmp_path)
    outcome = result.check_parity("approximate", metric=largest, bound=1e-3)
    assert outcome.status is Status.MISMATCH
    assert outcome.error is not None
    assert "required <= 0.001, against the model's own weights" in outcome.error.message
    assert (
        "against the weights as stored (2 as q4_0), as the errors in the table, it is within its bound: largest "
        in outcome.error.hint
    )
    assert outcome.outputs[0].passed


def test_a_stream_is_measured_against_the_models_own_weights(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv1d(16, 32, 3), nn.Tanh(), nn.Conv1d(32, 16, 3)).eval()
    target = TractNNEF(NEWEST, weights="int8", pulse=4, check_io=False)
    result = ModelExport(model, torch.randn(1, 16, 20), dynamic_axes={"input": {2: "S"}}).to(target, tmp_path / "m.tar")
    (original,) = result.check_parity(metric=largest, bound=0.05).metrics
    assert 1e-4 < original.value < 0.05
    (stored,) = result.check_parity(metric=largest, bound=1e-5, reference="stored").metrics
    assert stored.value < 1e-5


def test_weights_that_are_stored_as_they_are_have_one_reference(tmp_path: Path) -> None:
    model, x = nn.Linear(8, 4).eval(), torch.randn(3, 8)
    outcome = (
        ModelExport(model, x)
        .to(TractNNEF(NEWEST, check_io=False), tmp_path / "m.tar")
        .check_parity(metric=largest, bound=1e-5)
    )
    assert outcome.metrics[0].reference == ""
    assert "stored_weights" not in outcome.facts
