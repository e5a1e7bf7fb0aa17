"""What the writer puts on disk, read by real engines from the oldest supported release to the newest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t2n_core.engine.paths import EnginePath
from t2n_core.nnef.archive import write_archive
from t2n_core.nnef.graph import Fragment
from t2n_core.nnef.legality import check_graph
from t2n_core.nnef.lexical import KEYWORDS, identifier_problem
from t2n_core.nnef.sizes.dims import symbol
from t2n_core.nnef.spec import spec_for
from tests.releases import NEWEST

VERSIONS = ["0.19.2", "0.20.22", "0.21.19", "0.22.4", NEWEST]
DTYPES = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"]

pytestmark = pytest.mark.parametrize("version", VERSIONS)


def export(graph: Any, path: Path, version: str) -> Path:
    spec = spec_for("tract", version)
    assert [str(problem) for problem in check_graph(graph, spec)] == []
    return write_archive(graph, path, spec=spec)


def numbers(dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(41)
    if dtype == "?":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith("f"):
        return rng.standard_normal(shape).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)


def test_weights_and_inputs_of_every_dtype(version: str, build: Any, tract_engine: Any, tmp_path: Path) -> None:
    """A weight of 3 x 5 elements, so that packed booleans end inside a byte, comes back unchanged behind the input."""
    graph, inputs, expected = None, [], []
    outputs = []
    for dtype in DTYPES:
        name = np.dtype(dtype).name
        weight, array = numbers(dtype, (3, 5)), numbers(dtype, (2, 5))
        x, w = build.input(f"x_{name}", array.shape, dtype), build.variable(f"w_{name}", weight)
        outputs.append(build.op("concat", f"y_{name}", (5, 5), dtype, values=[x, w], axis=0))
        inputs.append(array)
        expected.append(np.concatenate([array, weight]))
    graph = build.outputs(*outputs)
    reply = tract_engine(version).run(export(graph, tmp_path / "a.nnef.tgz", version), [inputs])
    assert reply.status == "ok", reply.message
    for got, want in zip(reply.outputs[0], expected, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", ["folder", "a.tar", "a.tgz"])
def test_labels_and_forms(version: str, name: str, build: Any, tract_engine: Any, tmp_path: Path) -> None:
    labels = ["w", "encoder.layers.0.self_attn.in_proj_weight", "a/b/c.d", "x" * 180, "-1", "graph"]
    x = build.input("x", [2, 3])
    want = array = numbers("f4", (2, 3))
    for position, label in enumerate(labels):
        weight = np.full((1, 1), position + 1, np.float32)
        w = build.variable(label, weight)
        w.name = f"w{position}"
        x = build.op("mul", f"y{position}", [2, 3], x=x, y=w)
        want = want * weight
    reply = tract_engine(version).run(export(build.outputs(x), tmp_path / name, version), [[array]])
    assert reply.status == "ok", reply.message
    np.testing.assert_allclose(reply.outputs[0][0], want, rtol=1e-6)


def test_float_literals_are_read_to_the_last_bit(version: str, build: Any, tract_engine: Any, tmp_path: Path) -> None:
    bits = np.random.default_rng(7).integers(0, 2**32, 60, dtype=np.uint32).view(np.float32)
    literals = [float(n) for n in bits if np.isfinite(n)] + [0.1, 1e-5, 1e16, -0.5, 3.4028235e38, 1e-45]
    x = build.input("x", [1])
    ys = [build.op("max", f"y{k}", [1], x=x, y=n) for k, n in enumerate(literals)]
    archive = export(build.outputs(*ys), tmp_path / "literals", version)
    reply = tract_engine(version).run(archive, [[np.full(1, -np.inf, np.float32)]])
    assert reply.status == "ok", reply.message
    got = np.concatenate(reply.outputs[0])
    np.testing.assert_array_equal(got.view(np.uint32), np.array(literals, np.float32).view(np.uint32))


def test_everything_a_file_can_hold(version: str, build: Any, tract_engine: Any, tmp_path: Path) -> None:
    """Extensions, a symbol, properties with awkward texts, a fragment, several results."""
    t = symbol("T")
    x = build.input("x", [t, 3])
    y = build.op("scaled", "y", [t, 3], x=x, k=-2.0)
    m, v = build.ops("moments", {"m": [t, 1], "v": [t, 1]}, input=y, axes=[1])
    a, b, c = build.ops("unstack", {"a": [t], "b": [t], "c": [t]}, value=y, axis=1)
    text = "fragment scaled( x: tensor<scalar>, k: scalar ) -> ( y: tensor<scalar> )\n{\n  y = mul(x, k);\n}"
    graph = build.outputs(m, v, build.op("stack", "s", [t, 3], values=[c, b, a], axis=1))
    graph.fragments["scaled"] = Fragment("scaled", text, frozenset({"mul"}))
    graph.extensions = ["tract_symbol T"]
    graph.properties = {"plain": "text", "awkward": "a \"b\" 'c' \\d {{e}} {% f %} {# g #}", "command": "a --b='c {d}'"}
    array = numbers("f4", (4, 3))
    archive = export(graph, tmp_path / "a.tgz", version)
    reply = tract_engine(version).run(archive, [[array]], path=EnginePath.OPTIMISE_ONLY)  # 0.19.2 dies of its slices
    assert reply.status == "ok", reply.message
    want = array * -2
    for got, expected in zip(
        reply.outputs[0], (want.mean(1, keepdims=True), want.var(1, keepdims=True), want[:, ::-1]), strict=True
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_names_of_values(version: str, build: Any, tract_engine: Any, tmp_path: Path) -> None:
    """Names that are called fine are; those called misread are, by some version."""
    fine = ["untrue", "nan", "_1", "T", "in_", "iffy", "for_x", "e5", "i", "abs", "external", "axis"]
    assert [name for name in fine if identifier_problem(name)] == []
    x = last = build.input("x", [2])
    for name in fine:
        last = build.op("neg", name, [2], x=last)
    reply = tract_engine(version).run(export(build.outputs(last), tmp_path / "fine", version), [[numbers("f4", (2,))]])
    assert reply.status == "ok", reply.message
    for position, name in enumerate(["true_value", "false_1", "information"]):
        assert name not in KEYWORDS
        assert identifier_problem(name)
        build.graph.operations[1:] = []
        y = build.op("neg", name, [2], x=x)
        graph = build.outputs(build.op("abs", "z", [2], x=y))
        folder = write_archive(graph, tmp_path / str(position), spec=spec_for("tract", version))
        reply = tract_engine(version).run(folder, [[numbers("f4", (2,))]])
        assert reply.status == "error" or (name == "information" and version == "0.19.2")
