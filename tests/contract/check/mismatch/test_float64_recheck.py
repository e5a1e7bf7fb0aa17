"""A mismatch of the khronos target says who judged, and whether float64 clears the graph."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from t2n_core import KhronosNNEF, ModelExport
from t2n_core.errors import LowerError
from t2n_core.nnef.graph import Graph
from t2n_core.parity.outcome import Status
from tests.nets import net_of


def test_rounding_is_told_from_a_wrong_graph(tmp_path: Path) -> None:
    torch.manual_seed(1)
    result = ModelExport(nn.LayerNorm(300).eval(), torch.randn(3, 300) * 100).to(KhronosNNEF(), tmp_path / "m.tgz")
    outcome = result.check_parity("exact")
    assert outcome.status is Status.MISMATCH
    assert "the graph is right, and the difference is rounding" in outcome.describe()
    assert "judged by: interpreter" in outcome.describe()


def test_a_table_that_is_folded_in_float32_is_no_other_graph(tmp_path: Path) -> None:
    """The model creates it anew in each call, and the archive has what it is in float32."""
    torch.manual_seed(1)
    norm = nn.LayerNorm(300).eval()
    net = net_of(lambda self, x: self.norm(x) * torch.cos(torch.linspace(0, 1000, 300)), norm=norm)
    outcome = ModelExport(net, torch.randn(3, 300) * 100).to(KhronosNNEF(), tmp_path / "m.tgz").check_parity("exact")
    assert outcome.status is Status.MISMATCH
    assert "the graph is right, and the difference is rounding" in outcome.describe()


class Spoiled(KhronosNNEF):
    """Writes a graph that computes something else."""

    def post_trace(self, graph: Graph, active_extensions: list[str]) -> None:
        for operation in graph.operations:
            if operation.name == "mul":
                operation.arguments["y"] = operation.arguments["y"] * 1.01


def test_a_wrong_graph_is_wrong_in_float64_too(tmp_path: Path) -> None:
    torch.manual_seed(1)

    net = net_of(lambda _, x: torch.tanh(x) * 0.5)
    result = ModelExport(net, torch.randn(3, 5)).to(Spoiled(), tmp_path / "m.tgz")
    outcome = result.check_parity()
    assert outcome.status is Status.MISMATCH
    assert "graph and model also differ in float64, by 0.0" in outcome.describe()
    assert "judged by: interpreter, session" in outcome.describe()


def test_the_model_keeps_its_dtype(tmp_path: Path) -> None:
    model = nn.Linear(300, 3).eval()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KhronosNNEF, "post_trace", Spoiled.post_trace)
        ModelExport(model, torch.randn(2, 300)).to(KhronosNNEF(), tmp_path / "m.tgz").check_parity("exact")
    assert model.weight.dtype == torch.float32


def test_a_cast_that_wraps_around_is_not_supported_in_the_standard(tmp_path: Path) -> None:
    for example in (torch.tensor([1, 300]), torch.tensor([1.5, 200.0])):
        with pytest.raises(LowerError, match="one integer type: a cast that wraps around to uint8"):
            ModelExport(net_of(lambda _, x: x.to(torch.uint8)), example).to(KhronosNNEF(), tmp_path / "m.tgz")
