"""A session keeps an archive loaded, feeds its state back, names the step that fails, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from t2n_core.engine import ResolvedEngine
from t2n_core.engine.pool import TractRunner
from t2n_core.engine.tract.cli_backend import CliEngine
from t2n_core.engine.tract.engine import TractEngine
from t2n_core.errors import (
    EngineCrash,
    EngineLoadError,
    EngineOptimiseError,
    EngineOutOfMemory,
    EngineRunError,
    EngineTimeout,
    InputError,
)
from tests.releases import NEWEST

Engines = Callable[[str], TractRunner]
Write = Callable[[str], Path]

PAIR = [("past", "next")]
X = np.random.default_rng(5).normal(size=(1, 3, 2)).astype("f4")
SYMBOLS = "extension tract_symbol P;\nextension tract_symbol S;\n"
SUM = (
    SYMBOLS + "graph g(x, past) -> (y, next) { x = external<scalar>(shape = [1, S, 2]);"
    " past = external<scalar>(shape = [1, P, 2]); z = x * 2.0;"
    " next = concat([past, z], axis = 1); y = sum_reduce(next, axes = [1]); }"
)
"""Twice the sum of all that came, by a cache that grows."""
COUNT = (
    "graph g(x, past) -> (y, next) { x = external<scalar>(shape = [1, 3, 2]);"
    " past = external<scalar>(shape = [1, 3, 2]); next = past + x; y = next * 2.0; }"
)
"""A state of a fixed size."""
GATHER = (
    "graph g(x, past) -> (y, next) { x = external<scalar>(shape = [2, 3]); past = external<scalar>(shape = [1]);"
    ' next = past + 1.0; y = tract_core_gather(x, tract_core_cast(x * 100.0, to = "i64"), axis = 0); }'
)
"""A panic for inputs from 0.02 on in some releases."""


def test_state_is_fed_back(version: str, own_engine: Callable[[str], TractEngine], write_graph: Write) -> None:
    with own_engine(version).session(write_graph(SUM), state=PAIR) as session:
        assert (session.inputs, session.outputs) == (("x",), ("y",))
        assert session.state()[0].shape == (1, 0, 2)
        for step in range(1, 5):
            (y,) = session.run([X * step])
            np.testing.assert_allclose(y, 2 * sum(range(step + 1)) * X.sum(1, keepdims=True), rtol=1e-5)
        (past,) = session.state()
        np.testing.assert_array_equal(past, np.concatenate([2 * X, 4 * X, 6 * X, 8 * X], 1))
        session.set_state([past[:, :3]])
        np.testing.assert_allclose(session.run([X])[0], 4 * X.sum(1, keepdims=True), rtol=1e-5)
        session.reset()
        np.testing.assert_allclose(session.run([X])[0], 2 * X.sum(1, keepdims=True), rtol=1e-5)
        assert session.steps == 6
        assert set(session.times) == {"load", "optimise", "run"}


def test_without_pairs_the_caller_feeds_everything(version: str, tract_engine: Engines, write_graph: Write) -> None:
    with tract_engine(version).session(write_graph(COUNT)) as session:
        assert (session.inputs, session.outputs) == (("x", "past"), ("y", "next"))
        past = np.zeros_like(X)
        for step in range(1, 4):
            y, past = session.run([X, past])
            np.testing.assert_allclose(y, 2 * step * X, rtol=1e-5)
        assert session.state() == ()


def test_jobs_and_other_sessions_run_beside_it(tract_engine: Engines, write_graph: Write) -> None:
    engine, archive = tract_engine(NEWEST), write_graph(COUNT)
    with engine.session(archive, state=PAIR) as session, engine.session(archive, state=PAIR, initial=[X]) as other:
        np.testing.assert_array_equal(session.run([X])[0], 2 * X)
        assert engine.run(archive, [[X, X]]).status == "ok"
        np.testing.assert_array_equal(other.run([X])[0], 4 * X)
        np.testing.assert_array_equal(session.run([X])[0], 4 * X)


def test_a_refused_step_leaves_the_state(version: str, tract_engine: Engines, write_graph: Write) -> None:
    with tract_engine(version).session(write_graph(COUNT), state=PAIR) as session:
        session.run([X])
        with pytest.raises(EngineRunError, match="step 2: "):
            session.run([X[:, :2]])
        with pytest.raises(EngineRunError, match="step 3: 2 inputs passed, the model takes 1"):
            session.run([X, X])
        with pytest.raises(InputError, match="object"):
            session.run([np.array([None])])
        with pytest.raises(InputError, match="2 arrays of state passed, the session has 1"):
            session.set_state([X, X])
        np.testing.assert_allclose(session.run([X])[0], 4 * X, rtol=1e-6)


def test_a_panic_names_its_step_and_ends_the_session(
    own_engine: Callable[[str], TractEngine], write_graph: Write
) -> None:
    engine, archive = own_engine(NEWEST), write_graph(GATHER)
    zeros = np.zeros((2, 3), "f4")
    with engine.session(archive, state=PAIR, initial=[zeros[0, :1]]) as session:
        session.run([zeros])
        session.run([zeros])
        with pytest.raises(EngineCrash, match=r"step 3: thread '<unnamed>' panicked at .*out of range"):
            session.run([zeros + 3])
        for call in (lambda: session.run([zeros]), session.state, session.reset, lambda: session.set_state([X])):
            with pytest.raises((EngineCrash, InputError), match=r"the session has ended: step 3|arrays of state"):
                call()
    with engine.session(archive, state=PAIR, initial=[zeros[0, :1]]) as session:
        session.run([zeros])


def test_a_process_that_ends_between_steps_is_a_crash(
    own_engine: Callable[[str], TractEngine], write_graph: Write
) -> None:
    with own_engine("0.21.19").session(write_graph(COUNT), state=PAIR) as session:
        session.run([X])
        pid = session._worker.pid
        inner = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        os.kill(int(inner[0]) if inner else pid, 11)
        time.sleep(0.2)
        with pytest.raises(EngineCrash, match="step 2: died of SIGSEGV"):
            session.run([X])


def test_a_step_that_takes_too_long_is_ended(own_engine: Callable[[str], TractEngine], write_graph: Write) -> None:
    size, products = 1500, 400
    steps = " ".join(f"x{step + 1} = matmul(x, x{step});" for step in range(products))
    archive = write_graph(
        f"{SYMBOLS}graph g(x) -> (y) {{ x = external<scalar>(shape = [S, S]); x0 = x + 1.0; {steps} y = x{products}; }}"
    )
    with own_engine("0.21.19").session(archive, timeout=2.0) as session:
        session.run([np.ones((2, 2), "f4")])
        time.sleep(2.2)  # a rest between two steps does not count
        session.run([np.ones((2, 2), "f4")])
        start = time.monotonic()
        with pytest.raises(EngineTimeout, match="step 3: killed, since it did not answer in time"):
            session.run([np.ones((size, size), "f4")])
        assert time.monotonic() - start < 10.0


def test_memory_is_bounded(version: str, tract_engine: Engines, write_graph: Write) -> None:
    graph = SYMBOLS + "graph g(x) -> (y) { x = external<scalar>(shape = [1, S]); y = tile(x, repeats = [3000, 1]); }"
    with tract_engine(version).session(write_graph(graph), memory_limit=30 << 20) as session:
        session.run([np.zeros((1, 10), "f4")])
        start = time.monotonic()
        with pytest.raises(EngineOutOfMemory, match="step 2: "):
            session.run([np.zeros((1, 10000), "f4")])
        assert time.monotonic() - start < 30.0


def test_what_cannot_be_opened(tract_engine: Engines, write_graph: Write, tmp_path: Path) -> None:
    engine, archive = tract_engine(NEWEST), write_graph(SUM)
    bad = write_graph("graph g(x) -> (y) { x = external<scalar>(shape = [2, 3]); y = foo(x); }")
    panic = write_graph("graph g(x) -> (y) { x = external<scalar>(shape = [2]); y = concat([x, x], axis = 5); }")
    free = write_graph(SUM.replace("[1, P, 2]", "[1, S, 2]"))
    for error, path, options, reason in [
        (EngineLoadError, tmp_path / "nothing", {}, "cannot be read"),
        (EngineLoadError, bad, {}, "No definition for operator"),
        (EngineCrash, panic, {}, "panicked at"),
        (InputError, archive, {"state": [("y", "next")]}, "no input 'y'"),
        (InputError, archive, {"state": [("past", "past")]}, "no output 'past'"),
        (InputError, archive, {"state": [("past", "next"), ("past", "y")]}, "'past' is in two pairs of state"),
        (InputError, archive, {"state": PAIR, "initial": []}, "0 arrays of state passed"),
        (InputError, free, {"state": PAIR}, "`past` has no initial size"),
        (InputError, archive, {"held_by_engine": True}, "needs state="),
    ]:
        with pytest.raises(error, match=reason), engine.session(path, **options):
            pass


def test_the_engine_holds_the_state(tract_engine: Engines, write_graph: Write) -> None:
    with tract_engine(NEWEST).session(write_graph(SUM), state=PAIR, held_by_engine=True) as session:
        for _ in range(2):
            for step in range(1, 4):
                (y,) = session.run([X * step])
                np.testing.assert_allclose(y, 2 * sum(range(step + 1)) * X.sum(1, keepdims=True), rtol=1e-5)
            session.reset()
        with pytest.raises(EngineRunError, match="cannot be read"):
            session.state()
        with pytest.raises(EngineRunError, match="takes no state"):
            session.set_state([X])


def test_state_that_no_engine_holds(tract_engine: Engines, write_graph: Write) -> None:
    with (
        pytest.raises(InputError, match=r"0\.22\.4 keeps no state itself: releases from 0\.23 on do"),
        tract_engine("0.22.4").session(write_graph(SUM), state=PAIR, held_by_engine=True),
    ):
        pass
    with (
        pytest.raises(EngineOptimiseError, match=r"the engine cannot keep this state itself: .* leaves past"),
        tract_engine(NEWEST).session(write_graph(COUNT), state=PAIR, held_by_engine=True),
    ):
        pass


def test_a_command_line_has_no_sessions(resolved_engine: Callable[[str], ResolvedEngine], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no sessions"):
        CliEngine(resolved_engine(NEWEST)).session(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_nothing_is_left_of_a_session(
    tract_engine: Engines, resolved_engine: Callable[[str], ResolvedEngine], write_graph: Write
) -> None:
    archive = write_graph(COUNT)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with tract_engine(NEWEST).session(archive, state=PAIR) as session:
            session.run([X])
            pid = session._worker.pid
        with pytest.raises(EngineRunError, match="the session is closed"):
            session.run([X])
        assert not Path(f"/proc/{pid}").exists()
    assert len(os.listdir("/proc/self/fd")) <= before + 3  # those of the engine's own worker
    script = (
        "import sys; from pathlib import Path; from t2n_core.engine import ResolvedEngine;"
        "from t2n_core.engine.tract.engine import TractEngine;"
        f"engine = TractEngine(ResolvedEngine('wheel', '{NEWEST}', Path(sys.argv[1]), sys.argv[3], '{NEWEST}'));"
        "session = engine.session(Path(sys.argv[2])); opened = session.__enter__();"
        "pid = opened._worker.pid;"
        "print(pid, *Path(f'/proc/{pid}/task/{pid}/children').read_text().split(), flush=True); sys.stdin.read()"
    )
    resolved = resolved_engine(NEWEST)
    command = [sys.executable, "-c", script, str(resolved.library), str(archive), resolved.sha256]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        family = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(family) == 2
        parent.kill()
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in family) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in family if Path(f"/proc/{pid}").exists()]
