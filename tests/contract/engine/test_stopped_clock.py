"""Limits of time hold where a test stops the clock of Python, as freezegun does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from t2n_core.engine import ResolvedEngine
from t2n_core.engine.processes import worker_process
from t2n_core.engine.processes.command import execute
from t2n_core.engine.tract.engine import TractEngine

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals")
X = np.random.default_rng(21).normal(size=(2, 3)).astype("f4")
GRAPH = "graph g(x) -> (y) { x = external<scalar>(shape = [2, 3]); y = x * 2.0; }"
ENDLESS = GRAPH.replace("x * 2.0", "relu(" * 60 + "x" + ")" * 60)
LONGEST = 15.0
"""Seconds after which the clock goes on, so that what waits for it fails and does not hang."""


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> Callable[[], float]:
    """Stop the clock; the fixture is a function that returns the seconds since then."""
    real = time.monotonic
    start = real()

    def stopped() -> float:
        return start if real() < start + LONGEST else real() + 1e6

    for module, name in ((time, "monotonic"), (time, "time"), (time, "perf_counter"), (subprocess, "_time")):
        monkeypatch.setattr(module, name, stopped)
    return lambda: real() - start


def test_a_command_is_ended(seconds: Callable[[], float]) -> None:
    ended = execute(["sleep", str(2 * LONGEST)], 0.5, None, os.environ)
    assert (ended.killed, ended.exit_code) == (True, -signal.SIGKILL)
    assert 0.4 < seconds() < LONGEST - 2


def test_a_command_that_ends_in_time_is_not(seconds: Callable[[], float]) -> None:
    ended = execute(["sh", "-c", "sleep 0.1; echo done; exit 3"], 10.0, None, os.environ)
    assert (ended.killed, ended.exit_code, ended.stdout) == (False, 3, "done\n")


def test_a_job_is_ended(
    seconds: Callable[[], float], resolved_engine: Callable[[str], ResolvedEngine], write_graph: Callable[[str], Path]
) -> None:
    with closing(TractEngine(resolved_engine("0.21.19"))) as engine:
        assert engine.run(write_graph(GRAPH), [[X]]).status == "ok"
        assert engine.run(write_graph(ENDLESS), [[X]], timeout=1.0).status == "timeout"
    assert seconds() < LONGEST - 2


def test_a_worker_that_does_not_end_is_killed(
    monkeypatch: pytest.MonkeyPatch,
    seconds: Callable[[], float],
    resolved_engine: Callable[[str], ResolvedEngine],
    write_graph: Callable[[str], Path],
) -> None:
    monkeypatch.setattr(worker_process, "CLOSE_TIMEOUT", 0.5)
    with closing(TractEngine(resolved_engine("0.21.19"))) as engine:
        assert engine.run(write_graph(GRAPH), [[X]]).status == "ok"
        assert engine._worker is not None
        os.kill(engine._worker.pid, signal.SIGSTOP)
    assert seconds() < LONGEST - 2
