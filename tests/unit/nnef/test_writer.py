"""The text of a graph: its form, and that the Khronos parser reads back what was meant."""

from __future__ import annotations

from typing import Any

import nnef
import numpy as np
import pytest
import sympy

from t2n_core.errors import SpecError, WriteError
from t2n_core.nnef.graph import Fragment
from t2n_core.nnef.lexical import float_text
from t2n_core.nnef.sizes.dims import symbol
from t2n_core.nnef.spec import spec_for
from t2n_core.nnef.writer import argument_text, graph_text
from tests.releases import NEWEST

TRACT = spec_for("tract", "0.21.19")
KHRONOS = spec_for("khronos", "1.0.5")


def test_whole_text(build: Any) -> None:
    x = build.input("x", [symbol("T"), 3])
    w = build.variable("layer.w", np.zeros((2, 3, 1), np.float32))
    y = build.op("conv", "y", [1, 2], input=x, filter=w, bias=0.5, padding=[(0, 1)], stride=[2], border="ignore")
    i = build.op("tract_core_cast", "i", [1, 2], "i8", input=y, to="i64")
    a, b = build.ops("unstack", {"a": [2], "b": [2]}, value=i, axis=0)
    m, v = build.ops("moments", {"m": [1], "v": [1]}, input=a, axes=[0])
    s = build.op("stack", "s", [3, 1], values=[m, v, b], axis=-1)
    graph = build.outputs(s, a)
    graph.extensions = ["tract_symbol T"]
    assert graph_text(graph, spec=TRACT) == (
        "version 1.0;\n\n"
        "extension tract_registry tract_core;\nextension tract_symbol T;\n\n"
        "graph network(x) -> (s, a)\n{\n"
        "  x = external(shape = [T, 3]);\n"
        '  layer_w = variable<scalar>(shape = [2, 3, 1], label = "layer.w");\n'
        '  y = conv(x, layer_w, 0.5, border = "ignore", padding = [(0, 1)], stride = [2]);\n'
        '  i = tract_core_cast(y, to = "i64");\n'
        "  [a, b] = unstack(i, axis = 0);\n"
        "  ( m, v ) = moments(a, axes = [0]);\n"
        "  s = stack([m, v, b], axis = -1);\n"
        "}\n"
    )


def test_tensors_behind_a_gap_are_named(build: Any) -> None:
    x, r, h = (build.input(name, [2, 3]) for name in "xrh")
    shapes = {"y": [2, 3], "z": [2, 3]}
    y, z = build.ops("tract_core_gru_seq", shapes, x=x, r=r, initial_h=h, hidden=3, chunk=1)
    text = graph_text(build.outputs(y, z), spec=spec_for("tract", NEWEST))
    assert "( y, z ) = tract_core_gru_seq(x, r = r, initial_h = h, hidden = 3, chunk = 1);" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (1.0, "1.0"),
        (-2.5, "-2.5"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1e-5, "1e-5"),
        (1.5e20, "1.5e20"),
        (1e16, "1e16"),
        (16777216.0, "16777216.0"),
        (1 / 3, "0.33333334"),
        (3.4028234663852886e38, "3.4028235e38"),
        (1.401298464324817e-45, "1e-45"),
    ],
)
def test_float_text(value: float, text: str) -> None:
    assert float_text(value) == text


def test_floats_survive_the_khronos_parser() -> None:
    bits = np.random.default_rng(7).integers(0, 2**32, 500, dtype=np.uint32)
    numbers = [n for n in bits.view(np.float32) if np.isfinite(n)]
    lines = "".join(f"  y{k} = add(x, {float_text(float(n))});\n" for k, n in enumerate(numbers))
    names = ", ".join(f"y{k}" for k in range(len(numbers)))
    head = f"version 1.0;\ngraph g(x) -> ({names})\n{{\n  x = external(shape = [1]);\n"
    graph = nnef.parse_string(head + lines + "}\n")
    read = np.array([op.inputs["y"] for op in graph.operations[1:]], np.float32)
    assert len(numbers) > 400
    np.testing.assert_array_equal(read.view(np.uint32), np.array(numbers).view(np.uint32))


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), 1e39])
def test_numbers_without_literal(value: float, build: Any) -> None:
    x = build.input("x", [2])
    y = build.op("add", "y", [2], x=x, y=value)
    with pytest.raises(WriteError, match="`add`: the argument `y` cannot be written") as caught:
        graph_text(build.outputs(y), spec=TRACT)
    assert caught.value.origin is not None
    assert caught.value.origin.op == "test::add"


def test_arguments() -> None:
    t = symbol("T")
    assert argument_text([True, np.bool_(False)]) == "[true, false]"
    assert argument_text([np.int64(-3), 2**63 - 1]) == "[-3, 9223372036854775807]"
    assert argument_text(np.float32(0.1)) == "0.1"
    assert argument_text([2 * t + 1, t]) == "[((T*2)+1), T]"
    assert argument_text([("a", 1), ("b", 2)]) == '[("a", 1), ("b", 2)]'
    assert argument_text([]) == "[]"


@pytest.mark.parametrize(
    "argument",
    [
        *(2**63, -(2**63) - 1, (1,), (), 1j, None, np.zeros(2)),
        *('a"b', "a'b", "a\\b", "é", "a\nb", "{{x}}", "{% if %}"),
        *(symbol("T") / 3, sympy.Max(symbol("T"), 3)),
    ],
    ids=str,
)
def test_arguments_without_form(argument: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        argument_text(argument)


def test_integer_stays_an_integer(build: Any) -> None:
    x = build.input("x", [2])
    y = build.op("add", "y", [2], x=x, y=1)
    assert "y = add(x, 1);" in graph_text(build.outputs(y), spec=TRACT)


def test_unknown_argument_and_operator(build: Any) -> None:
    x = build.input("x", [2])
    y = build.op("elu", "y", [2], x=x, alpha=0.3)
    with pytest.raises(SpecError, match="`elu` has no argument `alpha`"):
        graph_text(build.outputs(y), spec=TRACT)
    assert "elu(x, alpha = 0.3)" in graph_text(build.graph, spec=KHRONOS)
    build.graph.operations[1].name = "tract_core_silu"
    with pytest.raises(SpecError, match=r"available since 0\.23\.0"):
        graph_text(build.graph, spec=TRACT)


def test_wrong_number_of_results(build: Any) -> None:
    x = build.input("x", [2, 3])
    (m,) = build.ops("moments", {"m": [2, 1]}, input=x, axes=[1])
    with pytest.raises(WriteError, match="2 results, 1 are assigned"):
        graph_text(build.outputs(m), spec=TRACT)


def test_fragments_and_their_registries(build: Any) -> None:
    x = build.input("x", [2])
    y = build.op("twice", "y", [2], x=x, k=2)
    text = "fragment twice( x: tensor<scalar>, k: integer ) -> ( y: tensor<scalar> )\n{\n  y = tract_core_erf(x);\n}\n"
    build.graph.fragments["twice"] = Fragment("twice", text, frozenset({"tract_core_erf"}))
    written = graph_text(build.outputs(y), spec=TRACT)
    assert written.index("tract_registry tract_core") < written.index(text) < written.index("y = twice(x, k = 2);")
    build.graph.fragments["twice"] = Fragment("twice", text.replace("{\n", "{{\n"), frozenset())
    with pytest.raises(WriteError, match="template"):
        graph_text(build.graph, spec=TRACT)


def test_same_graph_same_text(build: Any) -> None:
    x = build.input("x", [2])
    graph = build.outputs(build.op("neg", "y", [2], x=x))
    graph.properties = {"b": "2", "a": "1"}
    first = graph_text(graph, spec=TRACT)
    graph.properties = {"a": "1", "b": "2"}
    assert graph_text(graph, spec=TRACT) == first
    assert '[("a", "1"), ("b", "2")]' in first
