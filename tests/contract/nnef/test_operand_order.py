"""The order of operands that old engines are fast with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.nnef.graph import Value
from t2n_core.nnef.writer import operation_text
from tests.nets import net_of
from tests.releases import NEWEST

ROW = torch.tensor([0.5, -2.0, 3.0])


class Arithmetic(nn.Module):
    """Everything that has an order, with numbers and with a row that is stretched."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        plain = (x * 0.3, x + 1.5, x - 0.7, 0.7 - x, torch.relu(x), x.clamp(-0.4, 0.8))
        return (*plain, x * ROW, x + ROW, x - ROW, ROW - x, x * x[:, :1], x[:, :1] - x[:1])


def statements(version: str, tmp_path: Path, model: nn.Module, x: torch.Tensor) -> tuple[Any, list[str]]:
    target = TractNNEF(version, check_io=False)
    result = ModelExport(model, (x,)).to(target, tmp_path / f"{version}.nnef.tar")
    operations = [o for o in result.graph.operations if o.name in ("add", "sub", "mul", "max", "min", "relu")]
    return result, [operation_text(o, target.spec.operator(o.name)) for o in operations]


@pytest.mark.parametrize("version", ["0.19.15", "0.21.5", "0.21.6", NEWEST])
def test_the_numbers_are_right(version: str, tmp_path: Path) -> None:
    result, _ = statements(version, tmp_path, Arithmetic(), torch.randn(4, 3))
    result.assert_parity("close")


def test_a_number_comes_first_where_that_is_fast(tmp_path: Path) -> None:
    class Few(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x * 0.25 - 2.0)

    _, old = statements("0.21.5", tmp_path, Few(), torch.randn(4, 3))
    assert [line.partition("= ")[2] for line in old] == [
        "mul(0.25, x)",
        "add(-2.0, mul_mul)",
        "max(0.0, sub_add)",
    ]
    _, new = statements("0.21.6", tmp_path, Few(), torch.randn(4, 3))
    assert [line.partition("= ")[2].partition("(")[0] for line in new] == ["mul", "sub", "relu"]


def test_tensors_that_stretch_each_other_keep_their_order(tmp_path: Path) -> None:
    target = TractNNEF("0.19.15", check_io=False)
    args = (torch.randn(4, 1), torch.randn(1, 3))
    graph = ModelExport(net_of(lambda _, x, y: x - y), args).to(target, tmp_path / "outer.nnef.tar").graph
    (operation,) = [o for o in graph.operations if o.name == "sub"]
    assert [v.name for v in operation.arguments.values() if isinstance(v, Value)] == ["x", "y"]


@pytest.mark.parametrize("version", ["0.21.8", "0.21.10", "0.21.19"])
def test_the_second_operand_may_have_fewer_axes(version: str, tmp_path: Path) -> None:
    for axes in (None, {"x": {1: "T"}}):
        net = net_of(lambda _, x: (x - x.mean(), x.mean() - x, x - x.mean(0), (x - x.mean()) / x.std()))
        export = ModelExport(net, (torch.randn(2, 12, 4),), input_names=["x"], dynamic_axes=axes)
        export.to(TractNNEF(version), tmp_path / "centred.nnef.tar").assert_parity()
