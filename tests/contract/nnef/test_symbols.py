"""What the archive says of the sizes of dynamic axes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.nnef.graph import Graph
from t2n_core.parity.samples import Sample
from tests.nets import net_of
from tests.releases import NEWEST


class MergedSums(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.pad(x.softmax(1), (0, 0, 0, 1, 0, 1)).flatten(0, 1)


class Reflected(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.pad(x.mT, (1, 1), mode="reflect")


def export(model: nn.Module, version: str, axes: dict[int, str], folder: Path) -> Graph:
    exported = ModelExport(model, (torch.randn(5, 4, 6),), input_names=["x"], dynamic_axes={"x": axes})
    return exported.to(TractNNEF(version, check_io=False), folder / "m.nnef.tar").graph


def extensions(version: str, folder: Path) -> list[str]:
    return export(nn.ReLU(), version, {0: "T"}, folder).extensions


def test_a_size_is_at_least_1_where_that_can_be_said(tmp_path: Path) -> None:
    assert extensions("0.21.7", tmp_path) == ["tract_symbol T", "tract_assert T >= 1"]


def test_one_scenario_checks_one_symbol_where_it_can(tmp_path: Path) -> None:
    assert extensions("0.21.8", tmp_path) == ["tract_symbol T", "tract_assert T >= 1", "tract_assert range: T > 0"]


@pytest.mark.parametrize(
    ("version", "model", "scenarios"),
    [
        ("0.22.4", nn.Softmax(1), 2),
        ("0.23.0", nn.Softmax(1), 0),
        (NEWEST, nn.Softmax(1), 0),
        (NEWEST, nn.Softmax(0), 2),
        (NEWEST, nn.ReLU(), 2),
        (NEWEST, MergedSums(), 2),
        (NEWEST, Reflected(), 0),
    ],
)
def test_no_scenarios_where_the_archive_cannot_be_streamed(
    version: str, model: nn.Module, scenarios: int, tmp_path: Path
) -> None:
    """The leading axis is a batch, along which nobody streams."""
    graph = export(model, version, {0: "B", 1: "T"}, tmp_path)
    assert sum(": T >" in line for line in graph.extensions) == scenarios
    assert has_statement(graph) == (scenarios == 0)


def has_statement(graph: Graph) -> bool:
    return any(operation.name == "tract_core_dyn_slice" for operation in graph.operations)


def test_one_dynamic_size_keeps_its_scenario(tmp_path: Path) -> None:
    graph = export(nn.Softmax(1), NEWEST, {1: "T"}, tmp_path)
    assert graph.extensions[-1] == "tract_assert range: T > 0"
    assert not has_statement(graph)


def test_each_size_is_guarded_at_its_smallest_input_that_is_computed_with(tmp_path: Path) -> None:
    net = net_of(lambda _, x, y, z, cache: [v.softmax(1) for v in (x, y, z, torch.cat([cache, y], 1))])
    shapes = {"x": (2, 5, 3), "y": (2, 7), "z": (2, 7, 3), "cache": (2, 4)}
    axes = {"x": {1: "T"}, "y": {1: "S"}, "z": {1: "S"}, "cache": {1: "P"}}
    example = {name: torch.randn(shape) for name, shape in shapes.items()}
    archive = tmp_path / "m.nnef.tar"
    graph = ModelExport(net, example, dynamic_axes=axes).to(TractNNEF(NEWEST, check_io=False), archive).graph
    sums = [
        operation for operation in graph.operations if operation.outputs[0].name.startswith("sizes_out_of_range_add")
    ]
    assert sorted(operation.arguments["x"].name for operation in sums) == ["x", "y"]


def test_old_versions_know_the_symbol_only(tmp_path: Path) -> None:
    assert extensions("0.21.5", tmp_path) == ["tract_symbol T"]


@pytest.mark.parametrize("version", ["0.21.6", "0.21.19", "0.22.4", NEWEST])
def test_size_1_is_right(version: str, tmp_path: Path) -> None:
    model = nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 6), nn.GELU(), nn.Softmax(-1)).eval()
    x = torch.randn(1, 5, 4)
    export = ModelExport(
        model, (x,), input_names=["x"], dynamic_axes={"x": {0: "B", 1: "T"}}, extra_inputs=[(torch.randn(1, 1, 4),)]
    )
    result = export.to(TractNNEF(version, check_io=False), tmp_path / "m.nnef.tar")
    result.assert_parity("approximate")
    assert any(isinstance(s, Sample) and s.inputs[0].shape == (1, 1, 4) for s in result.samples)
