"""Estimates of what the rounding of each tensor does to the outputs, and the order of the units that follows."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.torch_graph.graph.ir import TorchModuleIRGraph
from t2n_core.torch_graph.precision.order import order_of
from t2n_core.torch_graph.precision.roundings import Rounding, roundings_of
from t2n_core.torch_graph.precision.units import unit_of
from tests.nets import net_of
from tests.releases import NEWEST

TARGET = TractNNEF(NEWEST, check_io=False)
FIRST, SECOND, THIRD = (("", name) for name in ("first", "second", "third"))


class Net(nn.Module):
    """Two layers; `mid` and `out` are what is between and behind them."""

    def __init__(self, kind: str = "") -> None:
        super().__init__()
        torch.manual_seed(5)
        self.kind = kind
        self.first, self.norm, self.second = nn.Linear(64, 64), nn.BatchNorm1d(64), nn.Linear(64, 48)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.tanh(self.first(x))
        if self.kind == "moved":
            h = h.reshape(-1, 2, 32).flip(-1).reshape(-1, 64)
        elif self.kind == "normed":
            h = self.norm(h)
        elif self.kind == "copied":
            h = torch.ops.aten.copy(torch.zeros_like(h), h)
        elif self.kind == "chosen":
            h = torch.nn.functional.one_hot(h.argmax(-1), 64).float()
        out: Tensor = self.second(h)
        return out


def captured(kind: str, x: Tensor) -> TorchModuleIRGraph:
    return ModelExport(Net(kind).eval(), x).simplified(TARGET)


def in_halves(model: Net, x: Tensor) -> Tensor:
    """Return what the model computes of rounded weights and numbers."""

    def rounded(t: Tensor) -> Tensor:
        return t.half().float()

    with torch.no_grad():
        h = rounded(rounded(x) @ rounded(model.first.weight).T + rounded(model.first.bias))
        h = rounded(torch.tanh(h))
        return rounded(h @ rounded(model.second.weight).T + rounded(model.second.bias))


@pytest.mark.parametrize("kind", ["", "moved", "normed", "copied"])
def test_the_sum_of_all_roundings_is_the_error_of_all_in_halves(kind: str) -> None:
    x = torch.randn(256, 64, generator=torch.Generator().manual_seed(1))
    graph = captured(kind, x)
    estimated = sum(rounding.error for rounding in roundings_of(graph, [x], {}))
    plain = Net().eval()
    expected = plain(x).detach()
    actual = float((in_halves(plain, x) - expected).square().sum() / expected.abs().max() ** 2)
    assert 0.5 * actual < estimated < 2 * actual, "what is only moved is not rounded again"
    units = {unit for op in graph.op_nodes if (unit := unit_of(op)) is not None}
    assert {("first", "linear"), ("", "tanh"), ("second", "linear")} <= units
    assert {unit for rounding in roundings_of(graph, [x], {}) for unit in rounding.units} == units


def test_what_is_chosen_by_numbers_has_no_estimate_and_comes_last() -> None:
    x = torch.randn(8, 64)
    graph = captured("chosen", x)
    roundings = roundings_of(graph, [x], {})
    assert {unit for rounding in roundings for unit in rounding.units} == {("second", "linear")}
    units = list(dict.fromkeys(unit for op in graph.op_nodes if (unit := unit_of(op)) is not None))
    assert order_of(units, roundings)[0][0] == ("second", "linear")
    assert [error for _, error in order_of(units, roundings)] == [pytest.approx(sum(o.error for o in roundings))] * len(
        units
    )


def test_a_unit_of_whole_numbers_rounds_nothing() -> None:
    x = torch.randn(3, 8)
    net = net_of(lambda _, x: torch.tanh(x) * ((x > 0).float() + 1))
    roundings = roundings_of(ModelExport(net, x).simplified(TARGET), [x], {})
    assert [rounding.units for rounding in roundings if rounding.error == 0] == [{("", "add")}]
    assert {unit for rounding in roundings if rounding.error for unit in rounding.units} == {("", "tanh"), ("", "mul")}


def test_a_model_of_an_inference_mode_has_estimates() -> None:
    with torch.inference_mode():
        x = torch.randn(8, 64)
        graph = captured("", x)
        assert roundings_of(graph, [x], {})


def test_a_rounding_counts_once_for_all_that_share_it() -> None:
    """A tensor between two units is rounded by either: the second of them adds only what is its own."""
    roundings = [
        Rounding(frozenset({FIRST, SECOND}), 4.0),
        Rounding(frozenset({FIRST}), 1.0),
        Rounding(frozenset({SECOND}), 2.0),
        Rounding(frozenset({THIRD}), 5.5),
    ]
    assert order_of([FIRST, SECOND, THIRD], roundings) == [(FIRST, 5.0), (SECOND, 7.0), (THIRD, 12.5)]
    assert order_of([], []) == []
