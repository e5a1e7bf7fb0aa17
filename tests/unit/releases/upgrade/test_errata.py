"""The graph of an archive, and the errata that only one of two releases has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from packaging.version import Version

from t2n_core.dialect.tensors import Tensor
from t2n_core.nnef.graph import Graph
from t2n_core.nnef.reading.archive import read_archive
from t2n_core.nnef.sizes.dims import symbol
from t2n_core.releases.upgrade.errata import errata_of
from t2n_core.releases.upgrade.graph import Evaluated, graph_of

GRAPH = """version 1.0;
extension tract_symbol T;
graph network(a, b) -> (o)
{
  a = external(shape = [1, 1]);
  b = external(shape = [1, T]);
  c = slice(b, axes = [1], begin = [1], end = [T]);
  d = sub(a, c);
  o = tile(d, repeats = [1, 2]);
}
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    (tmp_path / "graph.nnef").write_text(GRAPH)
    evaluated = []
    for size in (5, 3, 7):
        shapes = {"a": (1, 1), "b": (1, size), "c": (1, size - 1), "d": (1, size - 1), "o": (1, 2 * size - 2)}
        values = {name: Tensor(np.zeros(shape), np.dtype("f4")) for name, shape in shapes.items()}
        evaluated.append(Evaluated({"T": size}, values))
    return graph_of(read_archive(tmp_path), evaluated)


def test_the_graph_has_the_shapes_of_all_values(graph: Graph) -> None:
    t = symbol("T")
    assert {value.name: value.shape for operation in graph.operations for value in operation.outputs} == {
        "a": (1, 1),
        "b": (1, t),
        "c": (1, t - 1),
        "d": (1, t - 1),
        "o": (1, 2 * t - 2),
    }
    cut = graph.operations[2]
    assert (cut.arguments["input"].name, cut.arguments["end"]) == ("b", [t])
    assert cut.outputs[0].producer is cut


def test_errata_that_are_mended_and_new(graph: Graph) -> None:
    old, wrong, new = (Version(version) for version in ("0.21.7", "0.21.8", "0.21.13"))
    (reason,) = [
        erratum for erratum in errata_of(graph, old, wrong).new if "the larger one minus the smaller one" in erratum
    ]
    assert reason in errata_of(graph, wrong, new).mended
    assert reason not in errata_of(graph, wrong, new).new


def test_sizes_of_any_form(tmp_path: Path) -> None:
    text = GRAPH.replace(
        "o = tile(d, repeats = [1, 2])", "T = add(d, 1.0);\n  o = slice(T, axes = [1], begin = [0], end = [(T+1)/2])"
    )
    (tmp_path / "graph.nnef").write_text(text)
    evaluated = []
    for size in (5, 3, 7):
        shapes = {"a": (1, 1), "b": (1, size), "c": (1, size - 1), "d": (1, size - 1), "T": (1, size - 1)}
        shapes["o"] = (1, (size + 1) // 2)
        values = {name: Tensor(np.zeros(shape), np.dtype("f4")) for name, shape in shapes.items()}
        evaluated.append(Evaluated({"T": size}, values))
    graph = graph_of(read_archive(tmp_path), evaluated)
    last = graph.operations[-1]
    (end,) = last.arguments["end"]
    assert (last.arguments["begin"], end) == ([0], last.outputs[0].shape[1])
    assert end != symbol("T")
