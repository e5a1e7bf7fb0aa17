"""Files for Model Explorer: each edge has its ends, modules are namespaces, and numbers name nodes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from t2n_core import ModelExport, TractNNEF
from t2n_core.export.model_explorer import explorer_graph, write_explorer_files
from tests.releases import NEWEST


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(5, 7), nn.Tanh())
        self.rnn = nn.LSTM(7, 4, batch_first=True)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y, (h, _) = self.rnn(self.encoder(x))
        return x + 1, y, h


@pytest.fixture
def graph(tmp_path: Path) -> object:
    export = ModelExport(Net().eval(), torch.randn(2, 3, 5), dynamic_axes={"x": {1: "T"}})
    return export.to(TractNNEF(NEWEST), tmp_path / "m.tar").graph


def test_each_edge_leads_from_a_result_to_a_node(graph) -> None:  # type: ignore[no-untyped-def]
    (graph_data,) = explorer_graph(graph, "net")["graphs"]
    nodes = {node["id"]: node for node in graph_data["nodes"]}
    assert len(nodes) == len(graph_data["nodes"])
    for node in graph_data["nodes"]:
        for edge in node.get("incomingEdges", []):
            results = {output["id"] for output in nodes[edge["sourceNodeId"]]["outputsMetadata"]}
            assert edge["sourceNodeOutputId"] in results
    read = {edge["sourceNodeId"] for node in graph_data["nodes"] for edge in node.get("incomingEdges", [])}
    assert "x" in read
    assert [node["label"] for node in graph_data["nodes"]].count("output") == 3


def test_modules_are_namespaces_and_nodes_name_their_line(graph) -> None:  # type: ignore[no-untyped-def]
    (graph_data,) = explorer_graph(graph, "net")["graphs"]
    by_label = {node["label"]: node for node in graph_data["nodes"]}
    assert by_label["tanh"]["namespace"] == "encoder/1"
    facts = {pair["key"]: pair["value"] for pair in by_label["tract_core_scan"]["attrs"]}
    assert facts["torch operator"] == "aten::lstm.input"
    assert "self.rnn(self.encoder(x))" in facts["torch line"]
    shape = {pair["key"]: pair["value"] for pair in by_label["tanh"]["outputsMetadata"][0]["attrs"]}
    assert shape["tensor_shape"] == "float32[2, T, 7]"


def test_numbers_are_node_data(graph, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    names = [operation.outputs[0].name for operation in graph.operations]
    write_explorer_files(graph, tmp_path, "net", errors={names[-1]: 0.5})
    data = json.loads((tmp_path / "errors.data.json").read_text("utf-8"))
    (model,) = json.loads((tmp_path / "model.graph.json").read_text("utf-8"))["graphs"]
    assert data[model["id"]]["results"] == {names[-1]: {"value": 0.5}}
    assert names[-1] in {node["id"] for node in model["nodes"]}
