"""Forms of statements on real engines: the order of operands, shared ones, unrolled loops, and their number."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from conformance.lab.measure import decoding
from conformance.lab.measure.nets.decoder import Size
from t2n_core import ModelExport, TractNNEF
from t2n_core.engine import resolve_engines
from t2n_core.nnef.graph import Value
from t2n_core.nnef.writer import operation_text
from tests.nets import net_of
from tests.releases import NEWEST
from tools.operator_counts import HEAD, NETS, RELEASES, count, recorded

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
    assert [line.partition("= ")[2] for line in old] == ["mul(0.25, x)", "add(-2.0, mul_mul)", "max(0.0, sub_add)"]
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


class WindowMask(nn.Module):
    """The mask of shifted windows: constants written into regions of a tensor, as in torchvision's Swin."""

    def forward(self, x: Tensor) -> Tensor:
        mask = x.new_zeros(12, 12)
        bounds = (slice(8), slice(8, 10), slice(10, 12))
        for number, region in enumerate(itertools.product(bounds, bounds)):
            mask[region] = number
        return x + mask


@pytest.mark.parametrize("version", ["0.21.19", "0.22.4", NEWEST])
def test_writes_into_regions_of_a_constant(version: str, tmp_path: Path) -> None:
    export = ModelExport(WindowMask(), (torch.randn(2, 12, 12),), input_names=["x"], dynamic_axes={"x": {0: "B"}})
    export.to(TractNNEF(version), tmp_path / "mask.nnef.tar").assert_parity("exact")


class Rotary(nn.Module):
    """Queries and keys of several layers, rotated by the same positions, which other operators read too."""

    def forward(self, q: Tensor, k: Tensor, x: Tensor) -> tuple[Tensor, ...]:
        angles = torch.arange(q.shape[2])[None, None, :, None] * torch.linspace(0.1, 1.0, q.shape[3])
        cos, sin = angles.cos(), angles.sin()
        for _ in range(4):
            q, k = (v * cos + torch.cat([-v[..., 3:], v[..., :3]], -1) * sin for v in (q, k))
        return q - cos, cos - k, torch.maximum(q, sin), q / (1.5 + cos), cos * x, q.transpose(1, 2)


@pytest.mark.parametrize("version", ["0.22.4", "0.23.0", "0.23.5", NEWEST])
def test_outputs_at_all_sizes(version: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    inputs = {"q": torch.randn(1, 4, 5, 6), "k": torch.randn(1, 2, 5, 6), "x": torch.randn(3, 1, 5, 6)}
    export = ModelExport(Rotary(), inputs, dynamic_axes={"q": {2: "S"}, "k": {2: "S"}, "x": {0: "B", 2: "S"}})
    result = export.to(TractNNEF(version), tmp_path / "rotary.nnef.tar")
    repeats = [o.arguments["repeats"] for o in result.graph.operations if o.name == "tile"]
    assert (sorted(repeats) == [[1, 2, 1, 1]] * 2 + [[1, 4, 1, 1]] * 2) == version.startswith("0.23")
    result.assert_parity("approximate")


class Unrolled(nn.Module):
    """A recurrence over the six frames of a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.rates, self.inputs = nn.Linear(5, 7), nn.Linear(5, 7)

    def forward(self, x: Tensor) -> Tensor:
        rates, inputs = torch.sigmoid(self.rates(x)), self.inputs(x)
        state, states = torch.zeros(x.shape[0], 7), []
        for step in range(x.shape[1]):
            state = rates[:, step] * state + inputs[:, step]
            states.append(state)
        return torch.stack(states, 1)


@pytest.mark.parametrize("version", ["0.21.19", NEWEST])
@pytest.mark.parametrize("axes", [None, {"x": {0: "B"}}])
def test_an_unrolled_loop(axes: dict[str, dict[int, str]] | None, version: str, tmp_path: Path) -> None:
    torch.manual_seed(4)
    export = ModelExport(Unrolled().eval(), {"x": torch.randn(3, 6, 5)}, dynamic_axes=axes)
    result = export.to(TractNNEF(version), tmp_path / "model.nnef.tar")
    gathers = [operation for operation in result.graph.operations if operation.name == "tract_core_gather"]
    assert bool(gathers) == (version == NEWEST)
    result.assert_parity("approximate")


NEWEST = RELEASES[-1]
CASES = [
    pytest.param(net, release, marks=[] if release == NEWEST else pytest.mark.nightly)
    for net in NETS
    for release in RELEASES
]


@pytest.mark.parametrize(("net", "release"), CASES)
def test_the_counts_are_those_on_record(net: str, release: str) -> None:
    before, now = recorded()[net, release], count(net, release)
    changes = [f"{heading}: {old} -> {new}" for heading, old, new in zip(HEAD, before, now, strict=True) if old != new]
    assert not changes, "\n".join([*changes, "if this is meant, python -m tools.operator_counts writes it anew"])


def test_the_record_has_all_nets() -> None:
    assert recorded().keys() == {(net, release) for net in NETS for release in RELEASES}


SMALL = Size(layers=2, heads=6, shared=2, width=8, inner=32, words=97)


@pytest.mark.parametrize("version", ["0.21.19", "0.22.4", NEWEST])
def test_tokens_of_a_decoder(version: str, tmp_path: Path) -> None:
    """The process fails where `detect_kv_cache` of 0.23 leaves a cache among the inputs."""
    (engine,) = resolve_engines(version)
    results = decoding.run_turns(engine, decoding.export_forms(tmp_path, engine, SMALL), SMALL, 7, 12, 1)
    assert ("float32, own cache" in results) == version.startswith("0.23")
    for form in {"float32", "float32, one token", "float32, own cache"} & results.keys():
        assert results[form]["tokens"] == results["torch"]["tokens"]
    assert len(set(results["torch"]["tokens"])) > 4
    assert {"float32, one token", decoding.PRODUCTS} <= results.keys()
    measured = {"export": {"ours": 1.0, "torch.export": 2.0}, "engines": {version: results}}
    assert "| all | export, against torch.export alone | 0.50 x | at most 1.3 x | met |" in decoding.tables(measured)[0]
