"""The two Khronos oracles and their agreement, on graphs written by hand."""

from __future__ import annotations

import dataclasses
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t2n_core.engine.khronos import child, nnef_file
from t2n_core.engine.khronos.engine import KhronosEngine, KhronosInterpreter, KhronosSession
from t2n_core.engine.processes.memory import MOST, limit_memory
from t2n_core.nnef.archive import write_archive
from t2n_core.nnef.legality import check_graph
from t2n_core.nnef.spec import spec_for

SPEC = spec_for("khronos", "1.0.5")
X = np.random.default_rng(23).standard_normal((2, 3, 5)).astype(np.float32)
Write = Callable[..., Path]


@pytest.fixture(scope="module")
def engine() -> Iterator[KhronosEngine]:
    engine = KhronosEngine()
    yield engine
    engine.close()


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes the statements of a graph; the input `x` is declared already."""

    def write(body: str, outputs: str = "y", inputs: str = "x") -> Path:
        head = f"version 1.0;\n\ngraph g({inputs}) -> ({outputs})\n{{\n  x = external(shape = [2, 3, 5]);\n"
        (tmp_path / "graph.nnef").write_text(f"{head}  {body}\n}}\n")
        return tmp_path

    return write


def test_both_judge(engine: KhronosEngine, write: Write) -> None:
    archive = write("m, v = moments(x, axes = [2]); y = add(m, v); z = gt(x, 0.5);", "y, z")
    reply = engine.run(archive, [[X], [2 * X]])
    assert reply.status == "ok"
    assert reply.facts["judged_by"] == ["interpreter", "session"]
    assert reply.facts["session"] == ""
    assert 0 <= reply.facts["session_max_error"] < 1e-5
    for x, (y, z) in zip((X, 2 * X), reply.outputs, strict=True):
        np.testing.assert_allclose(y, x.mean(2, keepdims=True) + x.var(2, keepdims=True), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(z, x > 0.5)
        assert z.dtype == np.bool_
    assert set(reply.times) == {"load", "run"}


@pytest.mark.parametrize("name", ["a.nnef.tgz", "a.tar", "folder"])
def test_archives_of_every_form(name: str, engine: KhronosEngine, build: Any, tmp_path: Path) -> None:
    weight = np.random.default_rng(2).standard_normal((1, 3)).astype(np.float32)
    index = np.array([2, 0, 1, 1], np.int64)
    x, w, i = build.input("x", X.shape), build.variable("layer/w", weight), build.variable("i", index)
    y = build.op("mul", "y", X.shape, x=x, y=w)
    graph = build.outputs(build.op("gather", "z", [2, 4, 5], input=y, indices=i, axis=1))
    assert check_graph(graph, SPEC) == []
    reply = engine.run(write_archive(graph, tmp_path / name, spec=SPEC), [[X]])
    assert reply.status == "ok", reply.message
    assert reply.facts["judged_by"] == ["interpreter", "session"]
    np.testing.assert_array_equal(reply.outputs[0][0], (X * weight[..., None])[:, index])


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("y = softmax(x, axes = [1, 2]);", "no softmax over several axes"),
        ("y = gelu(x);", "computes gelu by a sigmoid"),
        ("y = round(x);", "ties away from zero"),
        ("y = softplus(x);", "overflows"),
        ("c = constant<logical>(shape = [1], value = [true]); y = select(c, x, 0.0);", "crashes on a logical constant"),
        ("c = constant<integer>(shape = [2], value = [1]); y = gather(x, c);", "repeats one value"),
        ("y = box(x, size = [1, 1, 3], border = 'reflect');", "no border reflect in box"),
        ("y, i = max_pool_with_index(x, size = [1, 1, 2]);", "no kernel for max_pool_with_index"),
    ],
)
def test_what_the_session_cannot_judge(body: str, reason: str, engine: KhronosEngine, write: Write) -> None:
    reply = engine.run(write(body), [[X]])
    assert reply.status == "ok", reply.message
    assert reply.facts["judged_by"] == ["interpreter"]
    assert reason in reply.facts["session"]


def test_session_failure_is_told_and_not_held_against_the_graph(engine: KhronosEngine, write: Write) -> None:
    reply = engine.run(write("y = multilinear_upsample(x, factor = [3]);"), [[X]])
    assert reply.status == "ok"
    assert reply.outputs[0][0].shape == (2, 3, 15)
    assert reply.facts["judged_by"] == ["interpreter"]
    assert "the C++ executor: " in reply.facts["session"]


def test_slow_session_is_no_judge(engine: KhronosEngine, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("t2n_core.engine.khronos.engine.SESSION_TIMEOUT", 0.5)
    wide = "w = tile(x, repeats = [4, 40, 40]); f = reshape(w, shape = [1, 8, 120, 200]); "
    kernel = "k = constant(shape = [64, 8, 9, 9], value = [0.01]); "
    reply = engine.run(write(wide + kernel + "y = conv(f, k);"), [[X]])
    assert reply.status == "ok", reply.message
    assert reply.facts["judged_by"] == ["interpreter"]
    assert "timeout" in reply.facts["session"]


class Changed:
    """A session whose answer is changed on the way."""

    def __init__(self, session: KhronosSession, change: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]) -> None:
        self.session, self.change = session, change

    def run(self, *args: Any, **options: Any) -> Any:
        reply = self.session.run(*args, **options)
        return dataclasses.replace(reply, outputs=tuple(tuple(map(self.change, batch)) for batch in reply.outputs))


def changed(array: np.ndarray[Any, Any], by: float) -> np.ndarray[Any, Any]:
    copy = array.copy()
    copy[1, 2, 3] = by if not np.isfinite(by) else copy[1, 2, 3] * (1 + by)
    return copy


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda y: changed(y, 1e-3), r"differs by up to [0-9.e-]+"),
        (lambda y: changed(y, np.inf), "differs by up to"),
        (lambda y: changed(y, np.nan), "differs by up to"),
        (lambda y: y[:, :, :4], r"shape \(2, 3, 5\) in the interpreter and \(2, 3, 4\)"),
        (lambda y: y.astype(np.int32), "float32 in the interpreter and int32"),
    ],
)
def test_disagreement_is_an_error(
    change: Any, message: str, engine: KhronosEngine, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "session", Changed(engine.session, change))
    reply = engine.run(write("t = mul(x, 3.0); y = add(t, 20.0);"), [[X]])
    assert reply.status == "error"
    assert reply.outputs == ()
    assert re.search(rf"the two Khronos oracles disagree: batch 0, output 0 .*{message}", reply.message)


def test_rounding_is_no_disagreement(engine: KhronosEngine, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "session", Changed(engine.session, lambda y: changed(y, 1e-5)))
    reply = engine.run(write("t = mul(x, 3.0); y = add(t, 20.0);"), [[X]])
    assert reply.status == "ok"
    assert 1e-5 < reply.facts["session_max_error"] < 1e-3


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("y = silly(x);", "undefined operation 'silly'"),
        ("y = softabs(x, epsilon = 0.1);", "softabs is not in the standard"),
        ("y = pad(x, padding = [(0, 0), (0, 0), (0, 3000000000)]);", "the integer 3000000000 wraps"),
        ("c = constant(shape = [1, 3], value = [1.0, 2.0]); y = add(x, c);", "constant has 2 values for shape [1, 3]"),
        ("y = pad(x, padding = [(0, 0), (0, 0), (0, 1)], border = 'mirror');", "'mirror' is not a border"),
        ("y = reshape(x, shape = [2, 3, 6]);", "the shapes cannot be inferred"),
        ("c = constant(shape = [0], value = [1.0]); y = add(x, c);", "constant has shape [0]"),
        ("y = add(x, 1);", "Parse error"),
        ("y = relu(copy(x));", "`copy` is called inside `relu`"),
        ("t = neg(x); y = add(t, y = x);", "the tensor `y` of `add` is passed by name"),
        ("w = variable(shape = [1], label = ''); y = add(x, w);", ".dat"),
        ("w = variable(shape = [1], label = 'w'); y = add(x, w);", "w.dat"),
    ],
)
def test_lint(body: str, message: str, engine: KhronosEngine, write: Write) -> None:
    reply = engine.run(write(body), [[X]])
    assert (reply.status, reply.stage) == ("error", "load")
    assert message in reply.message


def test_what_is_not_flat_is_named(engine: KhronosEngine, tmp_path: Path) -> None:
    """The parser takes these once the file declares an extension of the standard."""
    body = "{ x = external(shape = [2]); %s }\n"
    head = "version 1.0;\n%s\ngraph g(x) -> (y)\n"
    expression = head % "extension KHR_enable_operator_expressions;" + body % "y = x * 2.0;"
    inside = head % "extension KHR_enable_operator_expressions;" + body % "y = relu(x + 2.0);"
    fragment = (
        "version 1.0;\nextension KHR_enable_fragment_definitions;\n"
        "fragment f(x: tensor<scalar>) -> (y: tensor<scalar>) { y = relu(x); }\ngraph g(x) -> (y)\n"
    ) + body % "y = f(x);"
    for text, words in (
        (expression, "the statement `extension KHR_enable_operator_expressions`"),
        (expression, "`y = x * 2.0` is not a call of an operator"),
        (inside, "an expression among the arguments of `relu`"),
        (fragment, "a fragment: strict NNEF is flat"),
    ):
        (tmp_path / "graph.nnef").write_text(text)
        reply = engine.run(tmp_path, [[np.ones(2, np.float32)]])
        assert (reply.status, reply.stage) == ("error", "load")
        assert words in reply.message


def test_all_problems_of_a_file_are_told(engine: KhronosEngine, write: Write) -> None:
    reply = engine.run(
        write("p = pad(x, padding = [(0, 0)], border = 'a'); y = pad(p, padding = [], border = 'b');"), []
    )
    assert "'a' is not a border" in reply.message
    assert "'b' is not a border" in reply.message


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ([], "the graph has 1 inputs, not 0"),
        ([X[:1]], "has shape [2, 3, 5], not [1, 3, 5]"),
        ([X.astype(np.float64)], "is scalar, not float64"),
        ([X.astype(np.int64)], "is scalar, not int64"),
    ],
)
def test_wrong_inputs(batch: Any, message: str, engine: KhronosEngine, write: Write) -> None:
    archive = write("y = neg(x);")
    for oracle in (engine, engine.interpreter, engine.session):
        reply = oracle.run(archive, [batch])
        assert (reply.status, reply.stage) == ("error", "run")
        assert message in reply.message


def test_no_such_archive(engine: KhronosEngine, tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path / "none.tgz"):
        assert engine.run(path, []).status == "error"
    (tmp_path / "bad.tgz").write_bytes(b"no archive")
    assert engine.run(tmp_path / "bad.tgz", []).status == "error"


def test_shapes_of_all_tensors_are_compared(write: Write) -> None:
    """Also of those inside: the inferred shape of one is changed here."""
    folder = write("t = sum_reduce(x, axes = [2]); y = add(x, t);")
    graph = nnef_file.load(folder)
    graph.tensors["t"] = graph.tensors["t"]._replace(shape=[2, 3, 4])
    run = child.prepare_interpreter(folder, graph, {}, lambda *sent: None)
    with pytest.raises(child.Rejected, match=r"t: its inferred shape is \[2, 3, 4\], its actual one \[2, 3, 1\]"):
        run([X])


def test_operators_whose_inferred_shape_contradicts_the_standard(engine: KhronosEngine, write: Write) -> None:
    geometry = "size = [1, 1, 2], padding = [(0, 0), (0, 0), (0, 0)], stride = [1, 1, 2]"
    reply = engine.run(write(f"c, i = max_pool_with_index(x, {geometry}); y = sample(x, i, {geometry});"), [[X]])
    assert (reply.status, reply.stage) == ("error", "load")
    assert "the shapes cannot be inferred" in reply.message


def test_double_tells_rounding_from_a_wrong_graph(engine: KhronosEngine, write: Write) -> None:
    archive = write("t = add(x, 10000.0); y = sub(t, 10000.0);")
    single = engine.run(archive, [[X]])
    double = engine.interpreter.run_double(archive, [[X]])
    assert double.outputs[0][0].dtype == np.float64
    assert np.abs(single.outputs[0][0] - X).max() > 1e-5
    assert np.abs(double.outputs[0][0] - X).max() < 1e-11


def test_memory_is_bounded(write: Write) -> None:
    limit_memory(500 << 20)
    try:
        with closing(KhronosEngine()) as small:
            reply = small.run(write("y = tile(x, repeats = [1000, 1000, 100]);"), [[X]])
            assert (reply.status, reply.stage) == ("oom", "run")
            assert "allocate" in reply.message
            assert small.run(write("y = neg(x);"), [[X]]).status == "ok"
    finally:
        limit_memory(MOST)


def test_session_that_dies_is_a_crash_and_the_next_job_is_well(engine: KhronosEngine, write: Write) -> None:
    archive = write("c = constant<integer>(shape = [2], value = [1]); y = gather(x, c);")
    reply = engine.session.run(archive, [[X]])
    assert reply.status == "crash"
    assert "SIGABRT" in reply.message
    reply = engine.session.run(write("y = neg(x);"), [[X]])
    assert reply.status == "ok"
    np.testing.assert_array_equal(reply.outputs[0][0], -X)


def test_integers(engine: KhronosEngine, tmp_path: Path) -> None:
    (tmp_path / "graph.nnef").write_text(
        "version 1.0;\ngraph g(i) -> (y)\n{ i = external<integer>(shape = [3]); y = unsqueeze(i, axes = [1]); }\n"
    )
    reply = engine.run(tmp_path, [[np.array([5, -6, 7])]])
    assert reply.outputs[0][0].dtype == np.int64
    assert reply.outputs[0][0].tolist() == [[5], [-6], [7]]
    assert reply.facts["judged_by"] == ["interpreter", "session"]
    large = engine.run(tmp_path, [[np.array([2**40, 0, 1])]])
    assert large.outputs[0][0][0, 0] == 2**40
    assert "does not fit 32 bits" in large.facts["session"]


def test_timeout_and_restart(write: Write) -> None:
    oracle = KhronosInterpreter()
    try:
        statements = "".join(f"a{k} = matmul(a{k - 1}, a{k - 1}); " for k in range(1, 40))
        big = write(f"a0 = tile(w, repeats = [1, 1, 1, 300]); {statements} y = copy(a39);", inputs="x, w")
        text = (big / "graph.nnef").read_text().replace("a0 =", "w = external(shape = [1, 8, 900, 3]); a0 =")
        (big / "graph.nnef").write_text(text)
        arrays = [X, np.full((1, 8, 900, 3), 1e-3, np.float32)]
        assert oracle.run(big, [arrays], timeout=0.8).status == "timeout"
        assert oracle.run(write("y = neg(x);"), [[X]]).status == "ok"
    finally:
        oracle.close()


@pytest.mark.skipif(os.name != "posix", reason="kills by signal")
def test_killed_between_jobs(write: Write) -> None:
    oracle = KhronosSession()
    try:
        archive = write("y = neg(x);")
        assert oracle.run(archive, [[X]]).status == "ok"
        assert oracle._worker is not None
        os.kill(oracle._worker.pid, signal.SIGKILL)
        assert oracle.run(archive, [[X]]).status == "ok"
    finally:
        oracle.close()


def test_engine_of_the_process(write: Write) -> None:
    archive = write("y = neg(x);")
    first = KhronosEngine.shared()
    assert KhronosEngine.shared() is first
    assert first.run(archive, [[X]]).status == "ok"
    KhronosEngine.close_shared()
    assert first.interpreter._worker is None
    assert KhronosEngine.shared() is not first
    KhronosEngine.close_shared()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_process_has_its_own(write: Write) -> None:
    """A child's end must not end the parent's worker, nor may it talk on the parent's channel."""
    archive = write("y = neg(x);")
    code = f"""
import os, sys, pathlib, numpy as np
from t2n_core.engine.khronos.engine import KhronosEngine
x = np.ones((2, 3, 5), np.float32)
run = lambda: KhronosEngine.shared().run(pathlib.Path({str(archive)!r}), [[x]])
assert run().status == "ok"
mine = KhronosEngine.shared()
child = os.fork()
if child == 0:
    own = KhronosEngine.shared() is not mine and run().status == "ok"
    KhronosEngine.shared().close()
    os._exit(0 if own else 3)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
assert status == 0, status
assert run().status == "ok" and KhronosEngine.shared() is mine
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_parent_imports_neither_torch_nor_nnef() -> None:
    code = "import sys, t2n_core.engine.khronos.engine; assert not {'torch', 'nnef', 'nnef_tools'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
