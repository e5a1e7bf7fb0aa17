"""`tensor.data` is the tensor itself, for which no gradients are asked."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from t2n_core import ModelExport, TractNNEF
from t2n_core.errors import CaptureError
from tests.releases import NEWEST


class Reads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x.data, self.linear.weight.data, self.linear.bias) * x.data.sum()


class Writes(Reads):
    def forward(self, x: Tensor) -> Tensor:
        self.linear.weight.data.mul_(2)
        return self.linear(x)


@pytest.mark.parametrize("version", ["0.21.19", NEWEST])
def test_data_of_weights_and_inputs(version: str, tmp_path: Path) -> None:
    export = ModelExport(Reads().eval(), torch.randn(2, 7, 4), dynamic_axes={"x": {1: "T"}}, sizes=[..., {"T": 1}])
    result = export.to(TractNNEF(version), tmp_path / "model.nnef.tar")
    assert str(result.range) == "T >= 1"
    result.assert_parity("approximate")


class WritesItself(Reads):
    def forward(self, x: Tensor) -> Tensor:
        self.linear.weight.mul_(2)
        return self.linear(x)


class RescalesByOne(Reads):
    """Rescale the layers by a power of two that is 1 for the first ones, as RWKV does in its first call."""

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            self.linear.weight.div_(2**0)
        return self.linear(x)


def test_a_write_that_changes_nothing_is_none(tmp_path: Path) -> None:
    model = RescalesByOne().eval()
    ModelExport(model, torch.randn(2, 7, 4)).to(TractNNEF(NEWEST), tmp_path / "model.nnef.tar").assert_parity()


@pytest.mark.parametrize("make", [Writes, WritesItself])
def test_a_write_into_a_weight_is_refused(make: type[Reads]) -> None:
    model = make().eval()
    with pytest.raises(CaptureError, match=r"writes its parameter `linear.weight`"):
        ModelExport(model, torch.randn(2, 7, 4)).lower(TractNNEF(NEWEST))
