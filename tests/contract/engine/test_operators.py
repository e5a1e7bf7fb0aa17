"""Each line of tract lists the operators of its optimised graph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from t2n_core.engine.pool import TractRunner
from t2n_core.engine.protocol import OPERATORS, OPERATORS_UNKNOWN

Engines = Callable[[str], TractRunner]
Write = Callable[[str], Path]
X = np.random.default_rng(3).normal(size=(3, 5)).astype("f4")
TWO_PRODUCTS = """graph g(x) -> (y) {
  x = external(shape = [3, 5]);
  a = matmul(x, x, transposeB = true);
  b = tanh(a);
  y = matmul(b, x);
}"""


def test_the_optimised_graph_is_listed(version: str, tract_engine: Engines, write_graph: Write) -> None:
    reply = tract_engine(version).run(write_graph(TWO_PRODUCTS), [[X]])
    assert (reply.status, reply.facts[OPERATORS_UNKNOWN]) == ("ok", "")
    np.testing.assert_allclose(reply.outputs[0][0], np.tanh(X @ X.T) @ X, rtol=1e-4)
    counts = reply.facts[OPERATORS]
    assert counts["Tanh"] == 1
    assert sum(count for name, count in counts.items() if "MatMul" in name and "Pack" not in name) == 2
    assert not {"Source", "Const"} & set(counts)
    assert reply.facts["input"][0][0] == "x", "the facts of the model are there as well"


def test_the_body_of_a_loop_is_listed_apart(version: str, tract_engine: Engines, write_graph: Write) -> None:
    archive = write_graph(
        """
        fragment step(x: tensor<scalar>, h: tensor<scalar>) -> (h_new: tensor<scalar>) { h_new = tanh(add(h, x)); }
        graph g(x, start) -> (y) {
          x = external(shape = [3, 5]);
          start = external(shape = [1, 5]);
          y = tract_core_scan(body = "step", scan = [("x", x, 0, 1)], full = [], state = [("h", start, "h_new")],
                              output = [("h_new", "full", 0, 1)]);
        }"""
    )
    reply = tract_engine(version).run(archive, [[X, X[:1]]])
    assert (reply.status, reply.message) == ("ok", "")
    assert reply.facts[OPERATORS]["Scan"] == 1
    assert reply.facts[OPERATORS]["Scan/Tanh"] == 1


def test_other_stages_have_no_list(tract_engine: Engines, write_graph: Write) -> None:
    reply = tract_engine("0.22.4").run(write_graph(TWO_PRODUCTS), [[X]], stage="declutter")
    assert (reply.status, OPERATORS in reply.facts) == ("ok", False)
