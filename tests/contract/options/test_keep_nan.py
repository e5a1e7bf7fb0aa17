"""The option `keep_nan`, on real engines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from t2n_core import TractNNEF
from tests.contract.options.exports import every_line, exported, operators
from tests.nets import net_of
from tests.releases import NEWEST

NAN = float("nan")
X = torch.tensor([[1.0, NAN, -2.0, 0.0, 30.0, -30.0, 1e4, -1e4, 0.3]])
Y = torch.tensor([[NAN, 1.0, 3.0, 7.0, -1e5, 2.0, 1.0, -4.0, 0.2]])

LOSE_NAN: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "relu": lambda x, y: F.relu(x) + y,
    "relu6": lambda x, y: F.relu6(x) + y,
    "hardtanh": lambda x, y: F.hardtanh(x) + y,
    "hardsigmoid": lambda x, y: F.hardsigmoid(x) + y,
    "sigmoid": lambda x, y: torch.sigmoid(x) + y,
    "tanh": lambda x, y: torch.tanh(x) + y,
    "gelu": lambda x, y: F.gelu(x) + y,
    "clamp": lambda x, y: x.clamp(-1.5, 1.25) + y,
    "clamp by one bound": lambda x, y: x.clamp_min(0.25) + y,
    "clamp by tensors": lambda x, y: x.clamp(y, y + 2),
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "gate": lambda x, y: torch.sigmoid(x) * y,
    "gate with tanh": lambda x, y: (torch.tanh(x) + 1) * y,
    "glu": lambda x, y: F.glu(torch.cat([x[:, :-1], y[:, :-1]], 1)),
}


def net(name: str) -> nn.Module:
    return net_of(lambda _, x, y: LOSE_NAN[name](x, y))


@every_line
@pytest.mark.parametrize("name", LOSE_NAN)
def test_keep_nan(name: str, version: str, tmp_path: Path) -> None:
    """Numbers are as without the option, also where a gate has closed."""
    result = exported(net(name), (X, Y), TractNNEF(version, keep_nan=True), tmp_path)
    assert not result.notes
    result.assert_parity("approximate")


@pytest.mark.parametrize("name", ["clamp", "maximum"])
def test_the_kernel_alone_is_the_default(name: str, tmp_path: Path) -> None:
    result = exported(net(name), (X, Y), TractNNEF(NEWEST), tmp_path)
    assert not {"select", "eq"} & set(operators(result))
    assert " NaN where the other side has none" in result.check_parity("approximate").describe()
