"""The check before writing: every kind of problem is found, with its origin, and a right graph has none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from t2n_core.errors import SpecError
from t2n_core.nnef.dat import ArrayWeight
from t2n_core.nnef.graph import Fragment, Graph
from t2n_core.nnef.legality import check_graph, required_extensions
from t2n_core.nnef.lexical import identifier_problem
from t2n_core.nnef.sizes.dims import symbol
from t2n_core.nnef.spec import spec_for
from t2n_core.nnef.tract.quirks.hazards import HAZARDS
from tests.releases import NEWEST

TRACT = spec_for("tract", "0.21.19")
KHRONOS = spec_for("khronos", "1.0.5")


def problems(graph: Graph, spec: Any = TRACT) -> list[str]:
    return [problem.message for problem in check_graph(graph, spec)]


def test_right_graphs_have_no_problems(build: Any) -> None:
    t = symbol("T")
    x, i = build.input("x", [t, 3]), build.input("i", [4], "i8")
    w = build.variable("w", np.zeros((1, 3), np.float32))
    y = build.op("add", "y", [t, 3], x=x, y=w)
    r = build.op("reshape", "r", [3 * t], input=y, shape=[3 * t])
    g = build.op("tract_core_gather", "g", [4], input=r, indices=i, axis=0)
    s = build.op(
        "select", "s", [4], condition=build.op("gt", "c", [4], "?", x=g, y=0.5), true_value=g, false_value=-1.0
    )
    a, b = build.ops("unstack", {"a": [t], "b": [t]}, value=y, axis=1)
    graph = build.outputs(s, build.op("concat", "k", [2 * t], values=[a, b], axis=0))
    graph.extensions = ["tract_symbol T", "tract_assert T >= 1"]
    assert problems(graph) == []
    assert required_extensions(graph, TRACT) == ["tract_registry tract_core"]


def test_khronos_graph_without_problems(build: Any) -> None:
    x, i = build.input("x", [2, 3]), build.input("i", [4], "i4", "external")
    build.graph.operations[1].dtype = "integer"
    y = build.op("gather", "y", [2, 4], input=x, indices=i, axis=1)
    graph = build.outputs(build.op("mul", "z", [2, 4], x=y, y=2.0))
    assert problems(graph, KHRONOS) == []
    assert required_extensions(graph, KHRONOS) == []


def test_all_problems_are_found_with_their_origin(build: Any) -> None:
    x = build.input("x", [2, 3])
    a = build.op("tract_core_silu", "a", [2, 3], x=x)
    b = build.op("elu", "b", [2, 3], x=a, alpha=0.3)
    c = build.op("round", "c", [2, 3], x=b)
    d = build.op("area_downsample", "d", [2, 3], input=c, factor=[1])
    errors = check_graph(build.outputs(d), TRACT)
    assert [p.message for p in errors] == [
        "tract 0.21.19 has no operator `tract_core_silu`; available since 0.23.0",
        "`elu` has no argument `alpha`; it takes `x`",
        (
            "this `round` must not be written for tract 0.21.19: rounds ties away from zero; the standard says "
            "floor(x + 0.5), PyTorch rounds them to even"
        ),
        "`area_downsample` must not be written for tract 0.21.19: its body calls `length_of`, which no version defines",
    ]
    assert [p.op for p in errors] == ["tract_core_silu", "elu", "round", "area_downsample"]
    assert [p.origin.op for p in errors if p.origin] == [f"test::{p.op}" for p in errors]
    assert all(isinstance(p, SpecError) and p.target == "tract 0.21.19" for p in errors)
    assert errors[2].hint == "`tract_core_round_even`, or `floor`"


@pytest.mark.parametrize(
    ("operator", "arguments", "message"),
    [
        ("slice", {"axes": [0], "begin": [0]}, "needs the argument `end`"),
        ("slice", {"axes": 0, "begin": [0], "end": [1]}, "`axes` must be integer[], not 0"),
        ("slice", {"axes": [0.5], "begin": [0], "end": [1]}, "`axes` must be integer[], not [0.5]"),
        ("pad", {"padding": [(0, 0, 0)]}, "`padding` must be (integer,integer)[]"),
        ("pad", {"padding": [(0, 0), (1, 1)], "border": 1}, "`border` must be string, not 1"),
        ("sum_reduce", {"axes": [0], "normalize": 1}, "`normalize` must be logical, not 1"),
        ("leaky_relu", {"alpha": "a"}, "`alpha` must be scalar, not 'a'"),
        ("leaky_relu", {}, "needs the argument `alpha`"),
        ("leaky_relu", {"alpha": 0.1, "beta": 1.0}, "`leaky_relu` has no argument `beta`"),
    ],
)
def test_arguments(operator: str, arguments: dict[str, Any], message: str, build: Any) -> None:
    x = build.input("x", [2, 3])
    first = "x" if operator == "leaky_relu" else "input"
    messages = problems(build.outputs(build.op(operator, "y", [2, 3], **{first: x}, **arguments)))
    assert len(messages) == 1
    assert message in messages[0]


def test_khronos_types(build: Any) -> None:
    x = build.input("x", [2, 3])
    c = build.op("gt", "c", [2, 3], "?", x=x, y=1)
    y = build.op("add", "y", [2, 3], x=x, y=c)
    z = build.op("lt", "z", [2, 3], x=y, y=0.0)
    messages = problems(build.outputs(z), KHRONOS)
    assert "`gt`: the argument `y` must be tensor<scalar>, not 1" in messages
    assert "`add`: the argument `y` must be tensor<scalar>, not the tensor `c` of bool" in messages
    assert "`lt` returns tensor<logical>, `z` is float32" in messages
    assert len(messages) == 3
    assert problems(build.graph, spec_for("tract", "0.21.0")) == []


def test_order_and_names(build: Any) -> None:
    x = build.input("x", [2])
    late = build.op("neg", "late", [2], x=x)
    build.graph.operations.reverse()
    build.op("abs", "late", [2], x=late)
    build.graph.operations.append(build.graph.operations[0])
    other = build.op("abs", "true_value", [2], x=late)
    messages = problems(build.outputs(other))
    assert "`neg` uses `x` before it is assigned" in messages
    assert "two values have the name `late`" in messages
    assert "`late` is assigned twice" in messages
    assert "`true_value` starts with `true`, which tract's parser takes for a literal" in messages
    assert len(messages) == 4


@pytest.mark.parametrize(
    "name", ["true", "false_1", "inf", "information", "1x", "a.b", "", "é", "graph", "if", "shape_of"]
)
def test_names_that_are_refused(name: str) -> None:
    assert identifier_problem(name) is not None


@pytest.mark.parametrize("name", ["x", "_1", "T", "untrue", "nan", "in_", "iffy", "abs", "external"])
def test_names_that_are_fine(name: str) -> None:
    assert identifier_problem(name) is None


def test_inputs_and_outputs(build: Any) -> None:
    x = build.input("x", [2])
    y = build.op("neg", "y", [2], x=x)
    ghost = build.op("abs", "ghost", [2], x=y)
    build.graph.operations.pop()
    graph = build.outputs(y, x, y, ghost)
    graph.inputs.append(ghost)
    build.input("z", [2])
    graph.inputs.pop()
    assert problems(graph) == [
        "the input `ghost` has no `external` operation",
        "`z` is external and not an input",
        "the output `x` is an input of the graph",
        "the output `y` is listed twice",
        "the output `ghost` is never assigned",
        "the output `ghost` is an input of the graph",
    ]
    graph.outputs = []
    assert "the graph has no outputs" in problems(graph)


def test_sources_say_what_they_are(build: Any) -> None:
    x = build.input("x", [2], "f2", "external")
    i = build.input("i", [2], "i8")
    build.graph.operations[1].arguments["datum_type"] = "i32"
    w = build.variable("w", np.zeros((3, 1), np.float32))
    build.graph.operations[2].arguments["shape"] = [3, 2]
    build.graph.operations[2].dtype = "integer"
    v = build.variable("v", np.zeros((2,), np.float32))
    v.weight = ArrayWeight(np.zeros((2,), np.float64))
    u = build.variable("u", np.zeros((2,), np.float32))
    u.weight = None
    q = build.variable("q", np.zeros((2,), np.float32))
    q.dtype = np.dtype(np.complex64)
    build.graph.operations[-1].dtype = "complex"
    y = build.op("stack", "y", [2, 2], "f2", values=[x, i, w, v, u, q], axis=0)
    assert problems(build.outputs(y)) == [
        "`external` is float32 in tract, not float16",
        "`i` is int64: its datum_type must be 'i64'",
        "`variable<integer>` is assigned to `w` of float32",
        "`variable` declares shape [3, 2], `w` has [3, 1]",
        "the weight of `v` is float64[2], the value float32[2]",
        "the variable `u` has no weight",
        "`q` has dtype complex64, which tract does not have",
        "`variable<complex>`: scalar, integer or logical",
        "the weight of `q` is float32[2], the value complex64[2]",
    ]


def test_typed_externals_of_tract(build: Any) -> None:
    i, b = build.input("i", [2], "i8", "external"), build.input("b", [2], "?", "external")
    for operation, word in zip(build.graph.operations, ("integer", "logical"), strict=True):
        operation.dtype = word
    y = build.op("select", "y", [2], "i8", condition=b, true_value=i, false_value=i)
    assert problems(build.outputs(y)) == []


def test_extensions(build: Any) -> None:
    graph = build.outputs(build.op("neg", "y", [2], x=build.input("x", [2])))
    graph.extensions = ["tract_registry tract_transformers", "tract_assert T == 3", "tract_registry mine"]
    old = spec_for("tract", "0.20.22")
    assert problems(graph, old) == [
        "tract 0.20.22 has no registry `tract_transformers`; available since 0.21.13",
        "tract 0.20.22 cannot parse `tract_assert T == 3`; available since 0.21.7",
        "tract 0.20.22 has no registry `mine`",
    ]
    assert len(problems(graph, TRACT)) == 1
    graph.extensions = ["tract_assert pp: T >= 3"]
    assert len(problems(graph, spec_for("tract", "0.21.7"))) == 1
    assert problems(graph, spec_for("tract", "0.21.8")) == []


def test_fragments(build: Any) -> None:
    x = build.input("x", [2])
    y = build.op("mine", "y", [2], x=x, k=2)
    text = "fragment mine( x: tensor<scalar>, k: integer ) -> ( y: tensor<scalar> ) { y = tract_core_silu(x); }"
    graph = build.outputs(y)
    assert problems(graph)[0].startswith("tract 0.21.19 has no operator `mine`")
    graph.fragments["mine"] = Fragment("mine", text, frozenset({"tract_core_silu"}))
    assert problems(graph) == ["tract 0.21.19 has no operator `tract_core_silu`; available since 0.23.0"]
    newest = spec_for("tract", NEWEST)
    assert problems(graph, newest) == []
    assert required_extensions(graph, newest) == ["tract_registry tract_core"]
    graph.operations[1].arguments["k"] = 0.5
    assert "`k` must be integer" in problems(graph, newest)[0]
    assert any("strict NNEF is flat" in problem for problem in problems(graph, KHRONOS))
    graph.fragments["neg"] = Fragment("neg", "fragment nge( x: tensor<scalar> ) -> ( y: tensor<scalar> ) {}")
    messages = problems(graph, newest)
    assert f"the fragment `neg` redefines an operator of tract {NEWEST}" in messages
    assert "the text of the fragment `neg` does not declare it" in messages


def test_scan_body_is_a_fragment(build: Any) -> None:
    x = build.input("x", [2, 3])
    arguments = {"scan": [("x", x, 0, 1)], "full": [], "state": [], "output": [("y", "full", 0, 1)]}
    y = build.op("tract_core_scan", "y", [2, 3], body="step", **arguments)
    assert problems(build.outputs(y)) == ["the body of `tract_core_scan`, `step`, is not a fragment of the graph"]


def test_khronos_lint(build: Any) -> None:
    x = build.input("x", [2, 0])
    w = build.variable("a b", np.zeros((2, 1), np.float32))
    p = build.op("pad", "p", [2, 3], input=x, padding=[(0, 2**31), (0, 0)], border="mirror")
    c = build.op("constant", "c", [2, 3], shape=[2, 3], value=[1.0, 2.0])
    k = build.op("constant", "k", [1, 1], shape=[1, 1], value=[1])
    y = build.op("add", "y", [2, symbol("T")], x=build.op("add", "s", [2, 3], x=p, y=w), y=c)
    graph = build.outputs(build.op("add", "z", [2, 3], x=y, y=k))
    graph.properties = {"a": "b"}
    assert problems(graph, KHRONOS) == [
        "strict NNEF has no properties",
        "`x` has shape [2, 0]: extents are positive numbers in NNEF",
        "'a b' is not a label",
        "the integer 2147483648 in `padding` wraps around in the parser (32 bits)",
        "`mirror` is not a border of the standard",
        "`constant` has 2 values for shape [2, 3]",
        "`constant<scalar>` has values of another type",
        "`y` has shape [2, T]: extents are positive numbers in NNEF",
    ]


def test_khronos_has_float32_only(build: Any) -> None:
    x = build.input("x", [2], "f8", "external")
    messages = problems(build.outputs(build.op("neg", "y", [2], "f8", x=x)), KHRONOS)
    assert messages == [f"`{name}` has dtype float64, which khronos does not have" for name in "xy"]


def test_hazards_are_about_versions_and_arguments(build: Any) -> None:
    x = build.input("x", [2, 3, 5])
    y = build.op("slice", "y", [2, 3, 2], input=x, axes=[2], begin=[-2], end=[5])
    graph = build.outputs(y)
    refused = {v: problems(graph, spec_for("tract", v)) for v in ("0.19.2", "0.19.8", "0.22.4", "0.23.0", "0.24.1")}
    assert [bool(messages) for messages in refused.values()] == [True, False, False, True, True]
    y.producer.arguments["begin"] = [symbol("T") - 3]
    assert problems(graph, spec_for("tract", "0.23.0")) == []


def test_every_hazard_is_reachable() -> None:
    """A hazard about an operator that its versions do not have would be a mistake in the table."""
    for hazard in HAZARDS:
        versions = (
            f"0.19.2 0.19.15 0.20.20 0.20.22 0.21.3 0.21.6 0.21.10 0.21.12 0.21.14 0.21.19 0.22.4 {NEWEST}".split()
        )
        matching = [spec for v in versions if hazard.concerns((spec := spec_for("tract", v)).version)]
        assert matching, hazard
        for name in hazard.operators:
            assert any(name in set(s.names()) for s in matching), (name, hazard)
            for condition in hazard.conditions:
                parameters = [s.operator(name) for s in matching if name in set(s.names())]
                assert not condition.argument or all(p.parameter(condition.argument) for p in parameters)
