"""What goes in and comes out of every line of tract: each dtype, rank 0, nothing at all, and several batches."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from t2n_core.engine.pool import TractRunner
from t2n_core.engine.protocol import Array

NNEF_NAMES = {
    "bool": "bool", "u1": "u8", "u2": "u16", "u4": "u32", "u8": "u64", "i1": "i8", "i2": "i16", "i4": "i32",
    "i8": "i64", "f2": "f16", "f4": "f32", "f8": "f64", "c8": "complexf32", "c16": "complexf64",
}  # fmt: skip
Engines = Callable[[str], TractRunner]
Write = Callable[[str], Path]


def random_array(name: str, shape: tuple[int, ...], seed: int) -> Array:
    """The whole range of integers, both signs."""
    rng, dtype = np.random.default_rng(seed), np.dtype(name)
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, shape)).astype(bool)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.asarray(rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True))
    values = rng.normal(size=shape)
    return np.asarray(values + 1j * rng.normal(size=shape) if dtype.kind == "c" else values).astype(dtype)


@pytest.mark.parametrize("dtype", NNEF_NAMES)
def test_every_dtype_and_rank(version: str, dtype: str, tract_engine: Engines, write_graph: Write) -> None:
    """Transposed, so that the engine computes; rank 0 and empty arrays pass as they are."""
    for seed, shape in enumerate([(2, 3, 5), (0, 3, 2), ()]):
        axes = [2, 0, 1] if shape else []
        archive = write_graph(
            f"graph g(x) -> (x, y) {{ "
            f'x = tract_core_external(shape = {list(shape)}, datum_type = "{NNEF_NAMES[dtype]}"); '
            f"y = {f'transpose(x, axes = {axes})' if axes else 'tract_core_broadcast(x, shape = [])'}; }}"
        )
        array = random_array(dtype, shape, seed)
        reply = tract_engine(version).run(archive, [[array]])
        if dtype.startswith("c") and not version.startswith("0.19."):
            assert (reply.status, reply.stage) == ("error", "load")
            assert f"Unknown type {NNEF_NAMES[dtype]}" in reply.message
            continue
        assert (reply.status, reply.message) == ("ok", "")
        for got, expected in zip(reply.outputs[0], (array, array.transpose(axes)), strict=True):
            assert got.dtype == expected.dtype
            assert got.shape == expected.shape
            assert got.tobytes() == expected.tobytes()


def test_arithmetic_of_several_inputs_outputs_and_batches(
    version: str, tract_engine: Engines, write_graph: Write
) -> None:
    archive = write_graph(
        "graph g(a, b) -> (s, p) { a = external<scalar>(shape = [3, 4]); b = external<scalar>(shape = [4, 5]); "
        "p = matmul(a, b); s = a * 2.0 - 1.0; }"
    )
    rng = np.random.default_rng(7)
    batches = [[rng.normal(size=(3, 4)).astype("f4"), rng.normal(size=(4, 5)).astype("f4")] for _ in range(3)]
    reply = tract_engine(version).run(archive, batches)
    assert (reply.status, reply.stage, len(reply.outputs)) == ("ok", "run", 3)
    for (a, b), (s, p) in zip(batches, reply.outputs, strict=True):
        np.testing.assert_array_equal(s, a * 2 - 1)
        np.testing.assert_allclose(p, a.astype("f8") @ b.astype("f8"), rtol=1e-5, atol=1e-6)
    assert set(reply.times) == {"load", "optimise", "run"}
    assert all(seconds > 0 for seconds in reply.times.values())
    assert [fact.lower() for _, fact in reply.facts["input"]] == ["3,4,f32", "4,5,f32"]
    assert [fact.lower() for _, fact in reply.facts["output"]] == ["3,4,f32", "3,5,f32"]
    assert "tract_core" in reply.facts["registries"]


def test_strided_and_swapped_inputs_are_read_by_value(version: str, tract_engine: Engines, write_graph: Write) -> None:
    archive = write_graph("graph g(x) -> (y) { x = external<scalar>(shape = [3, 4]); y = x + 0.5; }")
    values = np.random.default_rng(3).normal(size=(3, 4)).astype("f4")
    forms = [values, values.astype(">f4"), np.asfortranarray(values), np.repeat(values, 2, axis=1)[:, ::2]]
    reply = tract_engine(version).run(archive, [[form] for form in forms])
    assert reply.status == "ok"
    for (got,) in reply.outputs:
        np.testing.assert_array_equal(got, values + np.float32(0.5))


def test_no_batches_only_load_and_optimise(version: str, tract_engine: Engines, write_graph: Write) -> None:
    archive = write_graph("graph g(x) -> (y) { x = external<scalar>(shape = [3, 4]); y = x + 0.5; }")
    reply = tract_engine(version).run(archive, [])
    assert (reply.status, reply.outputs) == ("ok", ())
    assert len(reply.facts["input"]) == 1


@pytest.mark.parametrize("suffix", ["tar", "tgz"])
def test_archives(version: str, suffix: str, tract_engine: Engines, write_graph: Write, tmp_path: Path) -> None:
    folder = write_graph("graph g(x) -> (y) { x = external<scalar>(shape = [2, 3]); y = x * 3.0; }")
    archive = tmp_path / f"a model.nnef.{suffix}"
    with tarfile.open(archive, "w:gz" if suffix == "tgz" else "w") as tar:
        tar.add(folder / "graph.nnef", "graph.nnef")
    x = np.arange(-3, 3, dtype="f4").reshape(2, 3)
    reply = tract_engine(version).run(archive, [[x]])
    np.testing.assert_array_equal(reply.outputs[0][0], x * 3)


def test_symbols_may_stay_open_or_be_set(version: str, tract_engine: Engines, write_graph: Write) -> None:
    archive = write_graph(
        "extension tract_symbol S;\n"
        "graph g(x) -> (y) { x = tract_core_external(shape = [S, 3], datum_type = \"f32\"); y = x * -1.5; }"
    )  # fmt: skip
    x4, x6 = (np.random.default_rng(size).normal(size=(size, 3)).astype("f4") for size in (4, 6))
    engine = tract_engine(version)
    opened = engine.run(archive, [[x4], [x6]])
    for (got,), x in zip(opened.outputs, (x4, x6), strict=True):
        np.testing.assert_array_equal(got, x * np.float32(-1.5))
    closed = engine.run(archive, [[x4], [x6]], symbols={"S": 4})
    assert (closed.status, closed.stage) == ("error", "run")
    assert len(closed.outputs) == 1
    np.testing.assert_array_equal(closed.outputs[0][0], x4 * np.float32(-1.5))


@pytest.mark.parametrize("stage", ["raw", "declutter"])
def test_graph_before_later_steps(version: str, stage: str, tract_engine: Engines, write_graph: Write) -> None:
    archive = write_graph("graph g(x) -> (y) { x = external<scalar>(shape = [2, 3]); y = relu(x - 1.0) * 3.0; }")
    x = np.random.default_rng(5).normal(size=(2, 3)).astype("f4")
    reply = tract_engine(version).run(archive, [[x]], stage=stage)  # type: ignore[arg-type]
    if version.startswith("0.23."):
        assert (reply.status, reply.stage) == ("error", "optimise")
        assert "runs optimised graphs only" in reply.message
    else:
        np.testing.assert_array_equal(reply.outputs[0][0], np.maximum(x - 1, 0) * 3)


def test_a_large_output_comes_through(tract_engine: Engines, write_graph: Write) -> None:
    archive = write_graph(
        "graph g(x) -> (y) { x = external<scalar>(shape = [2, 3]); y = tile(x, repeats = [1500, 1000]); }"
    )
    x = np.random.default_rng(6).normal(size=(2, 3)).astype("f4")
    reply = tract_engine("0.21.19").run(archive, [[x], [-x]])
    for (got,), array in zip(reply.outputs, (x, -x), strict=True):
        np.testing.assert_array_equal(got, np.tile(array, (1500, 1000)))
