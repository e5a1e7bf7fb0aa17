"""Archives that hold from the size 1 on are right where a slice or a transform is longer than the axis."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from tests.nets import net_of
from tests.releases import NEWEST


def overwritten(x: Tensor) -> Tensor:
    y = x.clone()
    y[:, 2:] = 0
    y[:, :-1] = y[:, 1:] * 2
    return y


def sliced_beside_a_pad(x: Tensor) -> tuple[Tensor, Tensor]:
    return F.pad(x.mT, (1, 1), mode="circular").mT * 2, x[:, 1:].relu()[:, 1:]


NETS: dict[str, Callable[[Tensor], Any]] = {
    "overwritten": overwritten,
    "sliced_beside_a_pad": sliced_beside_a_pad,
    "sliced_twice": lambda x: x[:, 1:].relu()[:, 1:],
    "transform_of_5": lambda x: torch.fft.rfft(x, n=5, dim=1).abs(),
}


def net(name: str) -> nn.Module:
    return net_of(lambda self, x: self.function(x), function=NETS[name])


@pytest.mark.parametrize("version", ["0.19.15", "0.21.19", NEWEST])
@pytest.mark.parametrize("name", NETS)
def test_sizes_from_one_on_are_right(name: str, version: str, tmp_path: Path) -> None:
    torch.manual_seed(len(name))
    others = [torch.randn(2, size, 4) for size in (1, 2, 3, 5, 9)]
    export = ModelExport(net(name), torch.randn(2, 8, 4), dynamic_axes={"x": {1: "T"}}, extra_inputs=others)
    result = export.to(TractNNEF(version, check_io=False), tmp_path / "model.nnef.tar")
    assert str(result.range) == "T >= 1"
    result.assert_parity()
