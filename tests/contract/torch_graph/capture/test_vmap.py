"""What torch.vmap maps is exported as the operators on all rows that it stands for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from t2n_core import ModelExport, TractNNEF
from tests.releases import NEWEST

VERSIONS = ("0.21.19", NEWEST)


class Net(nn.Module):
    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function
        self.weights = nn.Parameter(torch.randn(3, 5, 4))

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self, x)


def over_rows(net: Net, x: Tensor) -> Tensor:
    return torch.vmap(lambda row: row @ row.T)(x)


def over_the_last_axis(net: Net, x: Tensor) -> Tensor:
    return torch.vmap(lambda column: column.softmax(-1) * column.sum(), in_dims=2)(x)


def over_weights(net: Net, x: Tensor) -> Tensor:
    return torch.vmap(lambda weight: functional.linear(x, weight))(net.weights).mean(0)


def nested(net: Net, x: Tensor) -> Tensor:
    return torch.vmap(torch.vmap(lambda row: row - row.mean()))(x)


def with_a_write(net: Net, x: Tensor) -> Tensor:
    def changed(row: Tensor) -> Tensor:
        row = row * 2
        row[:, 0] = 3
        return row

    return torch.vmap(changed)(x)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("function", [over_rows, over_the_last_axis, over_weights, nested, with_a_write])
def test_vmap(function: Callable[..., Tensor], version: str, tmp_path: Path) -> None:
    torch.manual_seed(3)
    export = ModelExport(
        Net(function).eval(), torch.randn(2, 7, 4), dynamic_axes={"x": {1: "T"}}, sizes=[..., {"T": 1}]
    )
    result = export.to(TractNNEF(version), tmp_path / "model.nnef.tar")
    assert str(result.range) == "T >= 1"
    result.assert_parity("approximate")
