"""Nets over free height and width are ready soon: no pass of the engine takes time that grows exponentially."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from tests.releases import NEWEST

SECONDS = 15.0
"""To load, to optimise and to run five samples on every path. Both nets need 0.5 s; with a `mean_reduce`, minutes."""


class Residual(nn.Module):
    """The block of MobileNet 2, or 3 with a gate: widened, depthwise, narrowed, with a way around it."""

    def __init__(self, size: int, stride: int, gated: bool) -> None:
        super().__init__()
        self.widen, self.narrow = nn.Conv2d(4, 6, 1), nn.Conv2d(6, 4, 1)
        self.depthwise = nn.Conv2d(6, 6, size, stride, size // 2, groups=6)
        self.gate = nn.Conv2d(6, 6, 1) if gated else None
        self.around = stride == 1

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.depthwise(nn.functional.hardswish(self.widen(x))))
        if self.gate is not None:
            y = y * nn.functional.hardsigmoid(self.gate(y.mean((2, 3), keepdim=True)))
        y = self.narrow(y)
        return x + y if self.around else y


def net(gated: bool) -> nn.Module:
    torch.manual_seed(0)
    stages = [Residual(5 if i % 3 else 3, 2 if i % 4 == 0 else 1, gated) for i in range(10)]
    return nn.Sequential(*stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3)).eval()


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("version", [NEWEST, pytest.param("0.21.19", marks=pytest.mark.nightly)])
def test_a_net_of_many_blocks_is_ready_soon(version: str, gated: bool, tmp_path: Path) -> None:
    axes = {"x": {0: "B", 2: "H", 3: "W"}}
    export = ModelExport(net(gated), torch.randn(2, 4, 33, 41), input_names=["x"], dynamic_axes=axes)
    result = export.to(TractNNEF(version, check_io=False), tmp_path / "net.nnef.tar")
    outcome = result.check_parity(timeout=SECONDS)
    assert outcome.passed, outcome.summary
