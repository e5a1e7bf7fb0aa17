"""Values that grow with a size: what computes with them stays float32, or the plan has a note."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from t2n_core import ModelExport, TractNNEF
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.torch_graph.graph.ir import TorchModuleIRGraph
from t2n_core.torch_graph.precision.growth import growing_units, notes_of_growth, unbounded
from tests.nets import OfFunction
from tests.releases import NEWEST

FREQUENCIES = 1.0 / 10_000 ** (torch.arange(4) / 4)
Net = Callable[[Tensor], Any]


def positions(x: Tensor) -> Tensor:
    return torch.arange(x.shape[1], dtype=torch.float32)


def angles(x: Tensor) -> Tensor:
    return torch.outer(positions(x), FREQUENCIES)


GROWING: dict[str, tuple[Net, set[str]]] = {
    "rotary angles": (lambda x: x * angles(x).cos().exp(), {"outer", "cos"}),
    "positions as integers": (lambda x: torch.arange(x.shape[1]).float()[:, None] * FREQUENCIES + x, {"mul", "add"}),
    "parity": (lambda x: x.exp() - 2 * (positions(x) * 0.5).floor()[:, None], {"mul", "floor", "sub"}),
    "a phase": (lambda x: x.cumsum(1).sin().exp(), {"cumsum", "sin"}),
    "a size": (lambda x: (x * x.shape[1]).tanh().exp(), {"mul", "tanh"}),
    "an index": (lambda x: x.argmax(1).float().sqrt(), {"sqrt"}),
    "a length": (lambda x: (x > 0).to(torch.int64).sum(1).float().sqrt() + x.exp()[:, 0], {"sqrt", "add"}),
}
BOUNDED: dict[str, Net] = {
    "a mean": lambda x: x.mean(1).exp(),
    "a share of the length": lambda x: x.exp() / x.shape[1],
    "a normalised position": lambda x: (torch.arange(x.shape[1]) / x.shape[1])[:, None] * x,
    "a mask": lambda x: x * (torch.arange(x.shape[1]) > 3).float()[:, None],
    "an embedding": lambda x: torch.nn.functional.embedding(x.argmax(2), FREQUENCIES[:, None].repeat(2, 4)) * x,
    "a running sum of channels": lambda x: x.cumsum(2).exp(),
}


def graph_of(net: Net) -> TorchModuleIRGraph:
    export = ModelExport(OfFunction(net).eval(), torch.randn(1, 12, 4), input_names=["x"], dynamic_axes={"x": {1: "T"}})
    return export.simplified(TractNNEF(NEWEST, check_io=False))


@pytest.mark.parametrize("name", GROWING)
def test_what_grows_is_named(name: str) -> None:
    net, units = GROWING[name]
    reasons = growing_units(graph_of(net), {"T"})
    assert {operator for _, operator in reasons} == units
    assert set(reasons.values()) <= {"values that grow with T"}


def test_what_a_phase_is_computed_from_is_named_too() -> None:
    reasons = growing_units(graph_of(lambda x: (x.exp() * 0.5).cumsum(1).sin().tanh()), {"T"})
    assert reasons == {
        ("", "cumsum"): "values that grow with T",
        ("", "sin"): "values that grow with T",
        ("", "mul"): "errors that grow with T",
        ("", "exp"): "errors that grow with T",
    }
    assert {operator for _, operator in growing_units(graph_of(lambda x: x.exp().cumsum(1)), {"T"})} == {"cumsum"}


@pytest.mark.parametrize("name", BOUNDED)
def test_what_does_not_grow_is_not(name: str) -> None:
    net = BOUNDED[name]
    assert growing_units(graph_of(net), {"T"}) == {}


def test_nothing_grows_with_sizes_that_were_tried() -> None:
    assert growing_units(graph_of(GROWING["rotary angles"][0]), set()) == {}
    assert unbounded(SizeRange({"T": (1, 99), "S": (1, None)}), {"T": 99, "S": 99, "U": 5}) == {"S", "U"}
    assert unbounded(SizeRange({"T": (1, 99)}), {"T": 98}) == {"T"}


def test_a_plan_has_a_note_with_the_size_from_which_it_is_wrong() -> None:
    graph = graph_of(GROWING["rotary angles"][0])
    (line,) = notes_of_growth(graph, lambda unit: unit[1] != "cos", SizeRange({"T": (1, None)}), ["T"])
    assert line.startswith("precision: outer with values that grow with T in float16, which counts to 2048")
    assert "from T = 2049 on" in line
    assert notes_of_growth(graph, lambda unit: False, SizeRange({"T": (1, None)}), ["T"]) == []
    assert notes_of_growth(graph, lambda unit: True, SizeRange({"T": (1, 2048)}), ["T"]) == []
