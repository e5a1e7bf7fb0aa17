"""The level of float16, on a real engine: what PyTorch's own float16 hides does not pass."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from t2n_core import ExportResult, ModelExport, TractNNEF
from t2n_core.errors import InputError
from t2n_core.parity.outcome import Status
from tests.releases import NEWEST


class Shrinking(nn.Module):
    """Numbers of order one, times a scale."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layers(x)
        return out * self.scale


def float16(model: nn.Module, path: Path, **options: object) -> ExportResult:
    target = TractNNEF(NEWEST, check_io=False, **options)  # type: ignore[arg-type]
    return ModelExport(model.eval().half(), torch.randn(3, 16).half()).to(target, path / "m.tar")


def test_float16_pass(tmp_path: Path) -> None:
    outcome = float16(Shrinking(1.0), tmp_path).assert_parity("float16")
    assert outcome.status is Status.PASS
    peak, rms = outcome.metrics
    assert 1e-5 < peak.value < 5e-3
    assert 1e-5 < rms.value < 5e-3
    assert not rms.required


def test_a_tied_weight_is_one_in_float64_too(tmp_path: Path) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(16, 16), nn.Linear(16, 16)
            self.second.weight = self.first.weight

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.second(torch.tanh(self.first(x)))
            return out

    float16(Tied(), tmp_path).assert_parity("float16")


def test_zeros_for_small_numbers_do_not_pass(tmp_path: Path) -> None:
    """PyTorch's float16 outputs are zeros as well, so that every element is equal."""
    result = float16(Shrinking(1e-9), tmp_path)
    float32_outcome = result.check_parity("approximate")
    assert float32_outcome.level == "exact"
    outcome = result.check_parity("float16")
    assert outcome.status is Status.MISMATCH
    assert outcome.error is not None
    assert "metric peak: 1, required <= 0.005; metric rms: " in outcome.error.message


def test_stored_float16_are_judged_by_the_weights_of_the_model(tmp_path: Path) -> None:
    model = Shrinking(1.0)
    target = TractNNEF(NEWEST, weights="float16", check_io=False)
    result = ModelExport(model.eval(), torch.randn(3, 16)).to(target, tmp_path / "m.tar")
    peak = result.assert_parity("float16").metrics[0].value
    assert 1e-5 < peak < 5e-3


def test_a_model_that_needs_its_dtype_is_refused(tmp_path: Path) -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(16, 4)

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.layer(x.half())
            return out

    outcome = float16(Own(), tmp_path).check_parity("float16")
    assert outcome.error is not None
    assert "does not run in float64" in outcome.error.message


def test_a_model_of_float32_that_has_no_float64_is_its_own_reference(tmp_path: Path) -> None:
    class Single(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(16, 4)

        def forward(self, x: Tensor) -> Tensor:
            if x.dtype is torch.float64:
                raise TypeError("no kernel")
            out: Tensor = self.layer(x)
            return out

    target = TractNNEF(NEWEST, weights="float16", check_io=False)
    result = ModelExport(Single().eval(), torch.randn(3, 16)).to(target, tmp_path / "m.tar")
    assert 1e-5 < result.assert_parity("float16").metrics[0].value < 5e-3


def test_a_stream_has_no_such_level(tmp_path: Path) -> None:
    target = TractNNEF(NEWEST, check_io=False, dynamic_axes={"x": {0: "T"}})
    result = ModelExport(nn.Tanh().eval(), torch.randn(8, 4), input_names=["x"]).to(target, tmp_path / "s.tar")
    with pytest.raises(InputError, match="another level than `float16`"):
        result.check_streaming(2, "float16")
