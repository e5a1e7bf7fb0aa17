"""An engine's failure is a reply of one job, with its stage and reason, and the next job is as good as new."""

from __future__ import annotations

import hashlib
import signal
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from t2n_core.engine import ResolvedEngine
from t2n_core.engine.pool import TractRunner
from t2n_core.engine.protocol import Array, EngineReply
from t2n_core.engine.tract.engine import TractEngine
from t2n_core.errors import InputError
from tests.releases import NEWEST

Engines = Callable[[str], TractRunner]
Write = Callable[[str], Path]

X = np.random.default_rng(11).normal(size=(2, 3)).astype("f4")
GOOD = "graph g(x) -> (y) { x = external<scalar>(shape = [2, 3]); y = x * 2.0; }"


def body(expression: str) -> str:
    return f"graph g(x) -> (y) {{ x = external<scalar>(shape = [2, 3]); y = {expression}; }}"


def assert_still_good(engine: TractRunner | TractEngine, archive: Path) -> None:
    reply = engine.run(archive, [[X]])
    assert (reply.status, reply.stage, reply.message) == ("ok", "run", "")
    np.testing.assert_array_equal(reply.outputs[0][0], X * 2)


@pytest.mark.parametrize(
    ("graph", "chain"),
    [
        (body("foo(x)"), ['Plugging in assignement for "y"', 'No definition for operator Identifier("foo")']),
        (body("relu(z)"), ['Plugging in assignement for "y"', 'Identifier("z")']),
        (body('variable<scalar>(label = "w", shape = [2, 3])'), ['Plugging in assignement for "y"', "w"]),
        (GOOD.replace("(y)", "(y, nobody)"), ["Could not find variable for output named", "nobody"]),
        ("extension tract_registry nowhere;\n" + GOOD, ['Registry not found Identifier("nowhere")']),
    ],
)
def test_a_bad_graph_gives_the_chain_of_causes(
    version: str, graph: str, chain: list[str], tract_engine: Engines, write_graph: Write
) -> None:
    reply = tract_engine(version).run(write_graph(graph), [[X]])
    assert (reply.status, reply.stage, reply.outputs) == ("error", "load", ())
    position = -1
    for part in chain:
        position = reply.message.find(part, position + 1)
        assert position >= 0, reply.message
    assert "stack backtrace" not in reply.message
    assert_still_good(tract_engine(version), write_graph(GOOD))


def test_missing_and_damaged_archives(version: str, tract_engine: Engines, tmp_path: Path) -> None:
    noise = tmp_path / "noise.nnef.tgz"
    noise.write_bytes(np.random.default_rng(1).bytes(999))
    (tmp_path / "empty").mkdir()
    for archive, reason in [
        (tmp_path / "nothing.nnef.tgz", "Can not walk directory"),
        (noise, ""),
        (tmp_path / "empty", "graph.nnef was not found"),
    ]:
        reply = tract_engine(version).run(archive, [[X]])
        assert (reply.status, reply.stage) == ("error", "load")
        assert reason in reply.message
        assert archive.name in reply.message


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ([X.astype("f8")], "F64"),
        ([X[:, :2]], ""),
        ([X[0]], ""),
        ([X, X], "2 inputs passed, the model takes 1"),
        ([], "0 inputs passed, the model takes 1"),
        ([np.array(["a", "b"])], "takes no input of dtype <U1"),
        ([np.zeros((2, 3), "M8[s]")], "takes no input of dtype datetime64[s]"),
    ],
    ids=["dtype", "shape", "rank", "one-too-many", "none", "text", "time"],
)
def test_wrong_inputs_are_errors_of_the_run(
    version: str, inputs: list[Array], reason: str, tract_engine: Engines, write_graph: Write
) -> None:
    archive = write_graph(GOOD)
    reply = tract_engine(version).run(archive, [[X], inputs, [X]])
    assert (reply.status, reply.stage) == ("error", "run")
    assert reason.lower() in reply.message.lower()
    assert reply.message
    assert len(reply.outputs) == 1
    np.testing.assert_array_equal(reply.outputs[0][0], X * 2)


def test_a_job_that_keeps_going_says_which_batches_were_refused(
    version: str, own_engine: Callable[[str], TractEngine], write_graph: Write
) -> None:
    batches = [[X], [X[:, :2]], [X, X], [X + 1]]
    reply = own_engine(version).run(write_graph(GOOD), batches, keep_going=True)
    assert (reply.status, reply.stage, reply.message) == ("ok", "run", "")
    assert list(reply.refused) == [1, 2]
    assert "2 inputs passed, the model takes 1" in reply.refused[2]
    assert [len(outputs) for outputs in reply.outputs] == [1, 0, 0, 1]
    np.testing.assert_array_equal(reply.outputs[3][0], (X + 1) * 2)


@pytest.mark.parametrize("panicking", ["0.22.4", NEWEST])
def test_a_job_that_keeps_going_ends_with_a_panic(panicking: str, tract_engine: Engines, write_graph: Write) -> None:
    archive = write_graph(body('tract_core_gather(x, tract_core_cast(x * 100.0, to = "i64"), axis = 0)'))
    zeros = np.zeros((2, 3), "f4")
    batches = [[zeros[:, :2]], [zeros], [zeros + 3], [zeros]]
    reply = tract_engine(panicking).run(archive, batches, keep_going=True)
    assert (reply.status, reply.stage, list(reply.refused)) == ("crash", "run", [0])
    assert [len(outputs) for outputs in reply.outputs] == [0, 1]


def test_what_cannot_be_loaded_is_no_refused_batch(tract_engine: Engines, write_graph: Write) -> None:
    reply = tract_engine(NEWEST).run(write_graph(body("foo(x)")), [[X]], keep_going=True)
    assert (reply.status, reply.stage, reply.refused, reply.outputs) == ("error", "load", {}, ())


def test_complex_inputs_never_reach_an_engine_without_them(
    version: str, tract_engine: Engines, write_graph: Write
) -> None:
    reply = tract_engine(version).run(write_graph(GOOD), [[X.astype("c8")]])
    assert (reply.status, reply.stage) == ("error", "run")
    expected = "expected to match fact" if version.startswith("0.19.") else "takes no input of dtype complex64"
    assert expected in reply.message


def test_python_objects_are_the_callers_mistake(tract_engine: Engines, write_graph: Write) -> None:
    with pytest.raises(InputError, match="object"):
        tract_engine("0.21.19").run(write_graph(GOOD), [[np.array([None])]])


def test_an_output_without_numpy_form(version: str, tract_engine: Engines, write_graph: Write) -> None:
    reply = tract_engine(version).run(write_graph(body("tract_core_shape_of(x)")), [[X]])
    assert (reply.status, reply.stage) == ("error", "run")
    assert reply.message


PANICS = {
    "slice": (body("slice(x, axes = [7], begin = [0], end = [1])"), "load", "the len is 2 but the index is 7"),
    "concat": (body("concat([x, x], axis = 5)"), "load", "concat.rs"),
    "pad": (body("pad(x, padding = [(-5, 0), (0, 0)])"), "load", "assertion failed: self.dims"),
}


@pytest.mark.parametrize("case", PANICS)
def test_a_panic_is_one_crash_and_nothing_else(
    version: str, case: str, tract_engine: Engines, write_graph: Write
) -> None:
    graph, stage, reason = PANICS[case]
    bad, good = write_graph(graph), write_graph(GOOD)
    engine = tract_engine(version)
    for _ in range(2):
        reply = engine.run(bad, [[X]])
        assert (reply.status, reply.stage) == ("crash", stage)
        assert reply.message.startswith("thread '<unnamed>' panicked at ")
        assert ".rs:" in reply.message
        assert reason in reply.message
        assert "cannot unwind" not in reply.message
        assert "panicked" in reply.stderr
        assert_still_good(engine, good)


@pytest.mark.parametrize("panicking", ["0.22.4", NEWEST])
def test_a_panic_while_running_keeps_the_batches_before_it(
    panicking: str, tract_engine: Engines, write_graph: Write
) -> None:
    archive = write_graph(body('tract_core_gather(x, tract_core_cast(x * 100.0, to = "i64"), axis = 0)'))
    zeros = np.zeros((2, 3), "f4")
    reply = tract_engine(panicking).run(archive, [[zeros], [zeros + 3]])
    assert (reply.status, reply.stage, len(reply.outputs)) == ("crash", "run", 1)
    assert "out of range" in reply.message


def test_a_panic_of_either_kind_of_worker(
    version: str, own_engine: Callable[[str], TractEngine], write_graph: Write
) -> None:
    engine = own_engine(version)
    good = write_graph(GOOD)
    assert_still_good(engine, good)
    reply = engine.run(write_graph(PANICS["slice"][0]), [[X]])
    assert (reply.status, reply.stage) == ("crash", "load")
    assert "the len is 2 but the index is 7" in reply.message
    assert_still_good(engine, good)


def slow_to_run(write_graph: Write) -> tuple[Path, list[Array]]:
    """Minutes of work, whatever the machine."""
    size, steps = 2000, 500
    products = " ".join(f"x{step + 1} = matmul(x, x{step});" for step in range(steps))
    archive = write_graph(
        f"graph g(x) -> (x{steps}) {{ x = external<scalar>(shape = [{size}, {size}]); x0 = x + 1.0; {products} }}"
    )
    return archive, [np.random.default_rng(2).normal(size=(size, size)).astype("f4") / size]


def slow_to_load(write_graph: Write) -> tuple[Path, list[Array]]:
    """tract reads nested calls in time exponential in their depth."""
    nested = "x"
    for _ in range(60):
        nested = f"relu({nested})"
    return write_graph(body(nested)), [X]


def test_a_time_limit_of_centuries_is_none(tract_engine: Engines, write_graph: Write) -> None:
    assert tract_engine(NEWEST).run(write_graph(GOOD), [[X]], timeout=1e10).status == "ok"


@pytest.mark.parametrize(("make", "stage"), [(slow_to_run, "run"), (slow_to_load, "load")])
def test_a_job_that_takes_too_long_is_ended(
    make: Callable[[Write], tuple[Path, list[Array]]],
    stage: str,
    own_engine: Callable[[str], TractEngine],
    write_graph: Write,
) -> None:
    engine = own_engine("0.21.19")
    archive, inputs = make(write_graph)
    good = write_graph(GOOD)
    assert_still_good(engine, good)
    reply = engine.run(archive, [inputs], timeout=1.5)
    assert (reply.status, reply.stage, reply.outputs) == ("timeout", stage, ())
    assert "did not answer in time" in reply.message
    assert_still_good(engine, good)


def test_memory_is_bounded(version: str, tract_engine: Engines, write_graph: Write) -> None:
    """tract 0.23 can hang while it dies of this, which must not take the whole of the job's time."""
    engine, archive = tract_engine(version), write_graph(body("tile(x, repeats = [1000, 1000])"))
    start = time.monotonic()
    reply = engine.run(archive, [[X]], memory_limit=20 << 20, timeout=60.0)
    assert time.monotonic() - start < 30.0
    assert (reply.status, reply.stage) == ("oom", "run")
    assert "24000000" in reply.message
    assert engine.run(archive, [[X]], memory_limit=200 << 20).status == "ok"
    assert_still_good(engine, write_graph(GOOD))


def test_memory_is_bounded_unless_told_otherwise(version: str, tract_engine: Engines, write_graph: Write) -> None:
    reply = tract_engine(version).run(write_graph(body("tile(x, repeats = [30000, 30000])")), [[X]])
    assert (reply.status, reply.stage) == ("oom", "run")


def test_a_library_that_cannot_be_loaded(tmp_path: Path, write_graph: Write) -> None:
    broken = tmp_path / "tract.so"
    broken.write_bytes(b"\x7fELF" + bytes(200))
    digest = hashlib.sha256(broken.read_bytes()).hexdigest()
    engine = TractEngine(ResolvedEngine("wheel", "0.21.19", broken, digest, "0.21.19"))
    for _ in range(2):
        reply: EngineReply = engine.run(write_graph(GOOD), [[X]])
        assert (reply.status, reply.stage) == ("error", "load")
        assert f"{broken} cannot be used as a tract library" in reply.message
    engine.close()


@pytest.mark.skipif(not hasattr(signal, "SIGCHLD"), reason="Windows has no such signal")
def test_a_session_that_ignores_the_ends_of_its_children(
    version: str, resolved_engine: Callable[[str], ResolvedEngine], write_graph: Write
) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with closing(TractEngine(resolved_engine(version))) as engine:
            assert_still_good(engine, write_graph(GOOD))
    finally:
        signal.signal(signal.SIGCHLD, before)
