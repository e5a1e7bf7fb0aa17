"""Nodes of a profile go to the statement that does their work."""

from __future__ import annotations

import json
from typing import Any

import pytest

from t2n_core.errors import InputError
from t2n_core.nnef.reading.parser import read_text
from t2n_core.profiling.nodes import ProfiledNode, read_nodes
from t2n_core.profiling.profile import Profile, comparison_table, lines_of

GRAPH = read_text(
    "graph g(x, w) -> (y) { a = tanh(x); m = matmul(a, w); m_1 = add(m, x); r = add(m_1, a); "
    's = tract_core_scan(body = "step", scan = [("x", r, 0, 1)], output = [("h", "full", 0, 1)]); '
    "y = softmax(s, axes = [0]); }"
)


def node(name: str, operator: str, seconds: float | None, path: Any = (), number: int = 0) -> dict[str, Any]:
    return {"qualified_id": [list(path), number], "node_name": name, "op_name": operator, "secs_per_iter": seconds}


def profile(*nodes: dict[str, Any]) -> str:
    return json.dumps({"nodes": nodes, "profiling_info": {"iterations": 7}})


def test_nodes_are_read_without_those_of_bodies() -> None:
    inner = [node("h", "Tanh", None, [[3, "loop"]], n) for n in range(2)]
    text = profile(node("a", "Tanh", 1e-6, number=1), node("s", "Scan", 5e-6, number=3), *inner, node("x", "Source", 0))
    assert read_nodes(text) == [ProfiledNode("s", "Scan", 5e-6, 2), ProfiledNode("a", "Tanh", 1e-6)]


@pytest.mark.parametrize("text", ["", "{}", '{"nodes": [{}]}', "[]"])
def test_what_is_no_profile_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="profile cannot be read"):
        read_nodes(text)


def test_time_goes_to_the_product_that_others_were_fused_into() -> None:
    nodes = [
        ProfiledNode("r.pack_a", "OptMatMulPack", 1e-6),
        ProfiledNode("r", "OptMatMul", 6e-6),  # the engine names it by the last statement that it took in
        ProfiledNode("a", "Tanh", 1e-6),
        ProfiledNode("s.scan", "OptScan", 2e-6, 4),
    ]
    lines = lines_of(GRAPH, nodes, 20e-6, {"m": "aten::linear at model.py:3"})
    first, second = lines[0], lines[1]
    assert (first.name, first.operator, first.origin) == ("m", "matmul", "aten::linear at model.py:3")
    assert first.share == pytest.approx(0.7)
    assert first.seconds == pytest.approx(14e-6)
    assert (second.name, second.inside) == ("s", 4)
    assert "4 nodes of its body are not measured separately" in second.place
    assert sum(line.share for line in lines) == pytest.approx(1.0)


def test_a_name_ends_at_a_dot_or_a_line() -> None:
    nodes = [ProfiledNode(name, "Add", 1e-6) for name in ("m_1.fix", "m_12", "m-axis-2", "zz")]
    assert {line.name for line in lines_of(GRAPH, nodes, 1.0, {})} == {"m_1", "m", "(no statement)"}


def test_two_profiles_stand_side_by_side() -> None:
    first, second = (
        Profile(name, 20e-6, 1.0, 1.1, lines_of(GRAPH, [ProfiledNode("a", op, 1.0)], 20e-6, {"a": "aten::tanh"}))
        for name, op in (("tract 1", "Tanh"), ("tract 2", "Opt"))
    )
    assert comparison_table([first, second]).splitlines()[1].split() == ["20.0", "µs", "20.0", "µs", "aten::tanh"]
    assert "110% of its time" in first.describe()
