"""Models of torch.ao and pt2e on real engines: their numbers, and their weights as bytes in the archive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.ao.quantization as ao
import torch.nn.functional as F
from torch import Tensor, nn
from torch.ao.nn.quantized import FloatFunctional
from torch.ao.quantization.fx import _decomposed  # noqa: F401  registers the operators of pt2e

from t2n_core import KhronosNNEF, ModelExport, TractNNEF
from tests.releases import LINES, NEWEST


class Net(nn.Module):
    """A residual convolution with a head, whose last layer has more than 2^18 numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.quant, self.dequant, self.sum = ao.QuantStub(), ao.DeQuantStub(), FloatFunctional()
        self.stem, self.depth = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.wide, self.last = nn.Linear(8, 600), nn.Linear(600, 500)

    def forward(self, x: Tensor) -> Any:
        x = self.stem(self.quant(x))
        x = self.sum.add_relu(self.depth(x), x)
        x = F.adaptive_avg_pool2d(x, 1).flatten(1)
        return self.dequant(self.last(self.wide(x)))


def quantised() -> tuple[nn.Module, Tensor]:
    torch.manual_seed(0)
    model = Net().eval()
    model.qconfig = ao.get_default_qconfig("x86")  # type: ignore[assignment]
    prepared = ao.prepare(model)
    for _ in range(4):
        prepared(torch.randn(2, 3, 12, 12))
    quantised_model: nn.Module = ao.convert(prepared)
    return quantised_model, torch.randn(2, 3, 12, 12)


@pytest.mark.parametrize("version", LINES)
@pytest.mark.parametrize("capture", ["export", "trace"])
def test_a_model_of_torch_ao(capture: Any, version: str, tmp_path: Path) -> None:
    """Numbers within one step at all sizes of the batch, and each weight a byte under its own name."""
    model, x = quantised()
    export = ModelExport(model, x, capture=capture, dynamic_axes={"x": {0: "B"}})
    result = export.to(TractNNEF(version), tmp_path / "m")
    outcome = result.assert_parity(atol=1.01 * model.last.scale, rtol=0)  # type: ignore[operator]
    assert len(outcome.sizes) > 3
    stored = {path.stem: path.stat().st_size - 128 for path in (tmp_path / "m").glob("*.weight.dat")}
    assert stored == {"stem.weight": 216, "depth.weight": 72, "wide.weight": 4800, "last.weight": 300000}
    for name, layer in (("stem", model.stem), ("last", model.last)):
        numbers = np.frombuffer((tmp_path / "m" / f"{name}.weight.dat").read_bytes()[128:], np.int8)
        assert np.array_equal(numbers, layer.weight().int_repr().numpy().ravel())  # type: ignore[operator, union-attr]


class OfPt2e(nn.Module):
    """A weight of int8 with a scale for each output, as torchao leaves it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("_frozen_param0", torch.randint(-127, 128, (6, 4, 3, 3), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(6) / 20 + 0.01)
        self.register_buffer("zeros", torch.zeros(6, dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        ops, grid = torch.ops.quantized_decomposed, (0.04, 110, 0, 255, torch.uint8)
        x = ops.dequantize_per_tensor(ops.quantize_per_tensor(x, *grid), *grid)
        weight = ops.dequantize_per_channel(self._frozen_param0, self.scales, self.zeros, 0, -127, 127, torch.int8)
        return F.conv2d(x, weight, padding=1)


@pytest.mark.parametrize("version", LINES)
def test_a_model_of_pt2e(version: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    export = ModelExport(OfPt2e(), torch.randn(2, 4, 9, 9), dynamic_axes={"x": {0: "B"}})
    export.to(TractNNEF(version), tmp_path / "m").assert_parity("approximate")
    assert (tmp_path / "m" / "_frozen_param0.dat").stat().st_size == 128 + 216


def test_a_target_without_bytes_gets_real_numbers(tmp_path: Path) -> None:
    """The order of the exports of one capture makes no difference."""
    model, x = quantised()
    export = ModelExport(model, x)
    export.to(KhronosNNEF("1.0"), tmp_path / "khronos").assert_parity(atol=1.01 * model.last.scale, rtol=0)  # type: ignore[operator]
    export.to(TractNNEF(NEWEST), tmp_path / "tract")
    assert (tmp_path / "tract" / "last.weight.dat").stat().st_size == 128 + 300000
