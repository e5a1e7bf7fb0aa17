"""Workers start late, end with their parent, are never shared with a forked process, and leak nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import t2n_core
from t2n_core.engine import ResolvedEngine, close_all, engine_for
from t2n_core.engine.tract.engine import TractEngine

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

VERSION = "0.21.19"
X = np.random.default_rng(21).normal(size=(2, 3)).astype("f4")
Write = Callable[[str], Path]
Resolve = Callable[[str], ResolvedEngine]


@pytest.fixture
def good(write_graph: Write) -> Path:
    return write_graph("graph g(x) -> (y) { x = external<scalar>(shape = [2, 3]); y = x * 2.0; }")


@pytest.fixture
def endless(write_graph: Write) -> Path:
    """tract reads nested calls in time exponential in their depth."""
    nested = "relu(" * 60 + "x" + ")" * 60
    return write_graph(f"graph g(x) -> (y) {{ x = external<scalar>(shape = [2, 3]); y = {nested}; }}")


@pytest.fixture
def engine(resolved_engine: Resolve) -> Iterator[TractEngine]:
    engine = TractEngine(resolved_engine(VERSION))
    yield engine
    engine.close()


def worker_pid(engine: TractEngine) -> int:
    assert engine._worker is not None
    return engine._worker.pid


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children(pid: int) -> list[int]:
    """Return the processes that the threads of a process have started."""
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for thread in threads for child in thread.read_text().split()]


def seconds_of(pid: int) -> float:
    """Return how long a process has computed."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return int(fields[11]) / os.sysconf("SC_CLK_TCK")


def wait_until(condition: Callable[[], object], seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def assert_good(engine: TractEngine, archive: Path) -> None:
    reply = engine.run(archive, [[X]])
    assert (reply.status, reply.message) == ("ok", "")
    np.testing.assert_array_equal(reply.outputs[0][0], X * 2)


def test_nothing_starts_before_the_first_job_and_close_ends_it(engine: TractEngine, good: Path) -> None:
    assert engine._worker is None
    assert_good(engine, good)
    first = worker_pid(engine)
    assert_good(engine, good)
    assert worker_pid(engine) == first
    engine.close()
    assert not is_alive(first)
    assert_good(engine, good)
    assert worker_pid(engine) != first


def test_a_worker_killed_between_jobs_is_replaced(engine: TractEngine, good: Path) -> None:
    assert_good(engine, good)
    first = worker_pid(engine)
    os.kill(first, signal.SIGKILL)
    assert_good(engine, good)
    assert worker_pid(engine) != first


def test_a_worker_killed_in_a_job_is_that_jobs_end(engine: TractEngine, good: Path, endless: Path) -> None:
    assert_good(engine, good)
    first = worker_pid(engine)

    def kill() -> None:
        # a job that has said nothing yet would be given to the next worker
        wait_until(lambda: any(seconds_of(child) > 0.2 for child in children(first)))
        os.kill(first, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    start = time.monotonic()
    reply = engine.run(endless, [[X]], timeout=30.0)
    assert time.monotonic() - start < 20.0
    killer.join()
    assert (reply.status, reply.stage) == ("crash", "load")
    assert "SIGKILL from outside" in reply.message
    assert_good(engine, good)


@pytest.mark.parametrize(
    ("number", "status", "message"),
    [
        *((getattr(signal, name), "crash", name) for name in ("SIGKILL", "SIGSEGV", "SIGTERM", "SIGUSR1")),
        (signal.SIGSTOP, "timeout", "did not answer in time"),
    ],
)
def test_a_signal_to_the_job_is_named(
    number: signal.Signals, status: str, message: str, engine: TractEngine, good: Path, endless: Path
) -> None:
    assert_good(engine, good)
    first = worker_pid(engine)

    def strike() -> None:
        wait_until(lambda: children(first))
        time.sleep(0.1)
        os.kill(children(first)[0], number)

    striker = threading.Thread(target=strike)
    striker.start()
    reply = engine.run(endless, [[X]], timeout=3.0 if status == "timeout" else 30.0)
    striker.join()
    assert (reply.status, reply.stage) == (status, "load")
    assert message in reply.message
    assert_good(engine, good)
    assert worker_pid(engine) == first


def test_a_worker_that_does_not_answer_is_ended_by_the_parent(
    engine: TractEngine, good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_grace", 0.3)
    assert_good(engine, good)
    first = worker_pid(engine)
    os.kill(first, signal.SIGSTOP)
    start = time.monotonic()
    reply = engine.run(good, [[X]], timeout=0.3)
    assert reply.status == "timeout"
    assert 0.5 < time.monotonic() - start < 10.0
    assert not is_alive(first)
    assert_good(engine, good)


def test_an_interrupt_ends_the_worker_and_is_passed_on(engine: TractEngine, good: Path, endless: Path) -> None:
    assert_good(engine, good)
    first = worker_pid(engine)

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            engine.run(endless, [[X]], timeout=30.0)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert not is_alive(first)
    assert_good(engine, good)


def test_ctrl_c_in_the_terminal_does_not_reach_the_worker(engine: TractEngine, good: Path) -> None:
    assert_good(engine, good)
    pid = worker_pid(engine)
    assert os.getsid(pid) == pid != os.getsid(0)
    os.kill(pid, signal.SIGINT)
    assert_good(engine, good)
    assert worker_pid(engine) == pid


PARENT = """
    import hashlib, os, sys, numpy as np
    from pathlib import Path
    from t2n_core.engine import ResolvedEngine, engine_for
    sha256 = hashlib.sha256(Path(sys.argv[1]).read_bytes()).hexdigest()
    resolved = ResolvedEngine("wheel", "0.21.19", Path(sys.argv[1]), sha256, "0.21.19")
    engine = engine_for(resolved)
    x = np.zeros((2, 3), "f4")
    assert engine.run(Path(sys.argv[2]), [[x]]).status == "ok"
    print(engine._worker.pid, flush=True)
    {then}
"""


def start_parent(then: str, *arguments: object) -> tuple[subprocess.Popen[str], int]:
    script = textwrap.dedent(PARENT).format(then=then)
    command = [sys.executable, "-c", script, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(Path(t2n_core.__file__).parents[1])}
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert parent.stdout is not None
    return parent, int(parent.stdout.readline())


@pytest.mark.parametrize(
    "then",
    ["engine.run(Path(sys.argv[3]), [[x]], timeout=60.0)", "input_end, _ = os.pipe(); os.read(input_end, 1)"],
    ids=["in a job", "idle"],
)
def test_a_killed_parent_leaves_no_orphans(then: str, resolved_engine: Resolve, good: Path, endless: Path) -> None:
    parent, worker = start_parent(then, resolved_engine(VERSION).library, good, endless)
    try:
        family = [worker]
        if "engine.run" in then:
            assert wait_until(lambda: children(worker))
            family += children(worker)
        assert all(map(is_alive, family))
    finally:
        parent.kill()
        parent.communicate(timeout=20)
    assert wait_until(lambda: not any(map(is_alive, family)))


def test_a_stopped_worker_ends_with_its_parent(resolved_engine: Resolve, good: Path) -> None:
    parent, worker = start_parent("import time; time.sleep(60)", resolved_engine(VERSION).library, good)
    try:
        os.kill(worker, signal.SIGSTOP)
    finally:
        parent.kill()
        parent.communicate(timeout=20)
    assert wait_until(lambda: not is_alive(worker))


def test_a_worker_outlives_the_thread_in_which_it_was_started(engine: TractEngine, good: Path) -> None:
    first = threading.Thread(target=assert_good, args=(engine, good))
    first.start()
    first.join()
    started = worker_pid(engine)
    time.sleep(0.2)
    assert is_alive(started)
    assert_good(engine, good)
    assert worker_pid(engine) == started


def test_a_job_ends_with_a_worker_that_cannot_end_it(resolved_engine: Resolve, good: Path, endless: Path) -> None:
    then = "engine.run(Path(sys.argv[3]), [[x]], timeout=60.0)"
    parent, worker = start_parent(then, resolved_engine(VERSION).library, good, endless)
    try:
        assert wait_until(lambda: children(worker))
        time.sleep(0.1)
        (job,) = children(worker)
    finally:
        os.kill(worker, signal.SIGSTOP)
        parent.kill()
        parent.communicate(timeout=20)
        os.kill(worker, signal.SIGKILL)
    assert wait_until(lambda: not is_alive(job))


def test_a_worker_ends_although_a_fork_of_its_parent_holds_the_pipe(resolved_engine: Resolve, good: Path) -> None:
    """Such a fork keeps the worker's input open, so that its end is not enough to go by."""
    then = "engine.abandon = lambda: None; os.fork(); __import__('time').sleep(60)"
    parent, worker = start_parent(then, resolved_engine(VERSION).library, good)
    forked: list[int] = []
    try:
        assert wait_until(lambda: len(children(parent.pid)) == 2)
        forked = [pid for pid in children(parent.pid) if pid != worker]
    finally:
        parent.kill()
        parent.wait(20)
    try:
        assert wait_until(lambda: not is_alive(worker))
    finally:
        for pid in forked:
            os.kill(pid, signal.SIGKILL)


def test_a_parent_that_exits_takes_its_workers_along(resolved_engine: Resolve, good: Path) -> None:
    parent, worker = start_parent("", resolved_engine(VERSION).library, good)
    assert parent.wait(20) == 0
    assert not is_alive(worker)


def test_a_forked_process_gets_a_worker_of_its_own(resolved_engine: Resolve, good: Path) -> None:
    engine = engine_for(resolved_engine(VERSION))
    assert isinstance(engine, TractEngine)
    assert_good(engine, good)
    ours = worker_pid(engine)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            pool_engine = engine_for(resolved_engine(VERSION))
            assert isinstance(pool_engine, TractEngine)
            for child_engine in (pool_engine, engine):  # the pool's, and one that was in a variable
                assert_good(child_engine, good)
                os.write(writer, f"{worker_pid(child_engine)} ".encode())
            pool_engine.close()
            engine.close()
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    theirs = [int(pid) for pid in os.read(reader, 999).split()]
    os.close(reader)
    assert len(theirs) == 2
    assert len({ours, *theirs}) == 3
    assert is_alive(ours)
    assert_good(engine, good)
    assert worker_pid(engine) == ours
    assert wait_until(lambda: not any(map(is_alive, theirs)))


def test_the_pool_gives_one_engine_until_it_is_closed(resolved_engine: Resolve, good: Path) -> None:
    first = engine_for(resolved_engine(VERSION))
    assert engine_for(resolved_engine(VERSION)) is first
    assert isinstance(first, TractEngine)
    assert_good(first, good)
    pid = worker_pid(first)
    close_all()
    assert not is_alive(pid)
    assert engine_for(resolved_engine(VERSION)) is not first


def test_threads_take_turns(engine: TractEngine, good: Path) -> None:
    def work(seed: int) -> bool:
        x = np.random.default_rng(seed).normal(size=(2, 3)).astype("f4")
        (output,) = engine.run(good, [[x]]).outputs[0]
        return bool((output == x * 2).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(40)))


def test_many_jobs_leak_neither_descriptors_nor_processes(engine: TractEngine, good: Path, write_graph: Write) -> None:
    bad = write_graph("graph g(x) -> (y) { x = external<scalar>(shape = [2, 3]); y = concat([x, x], axis = 5); }")

    def open_descriptors() -> tuple[int, int]:
        return len(os.listdir(f"/proc/{worker_pid(engine)}/fd")), len(os.listdir("/proc/self/fd"))

    assert_good(engine, good)
    before = open_descriptors()
    for _ in range(20):
        assert_good(engine, good)
        assert engine.run(bad, [[X]]).status == "crash"
    assert open_descriptors() == before
    assert children(worker_pid(engine)) == []


def test_exit_handlers_run_once_and_the_environment_is_set(
    engine: TractEngine, good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A forked job must not run what the worker registered, such as a coverage tool's saving of its data."""
    (tmp_path / "site").mkdir()
    log = tmp_path / "log"
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RUST_BACKTRACE")
    (tmp_path / "site" / "sitecustomize.py").write_text(
        f"import atexit, os\n"
        f"values = ' '.join(os.environ[name] for name in {names})\n"
        f"atexit.register(lambda: open({str(log)!r}, 'a').write(values + '\\n'))\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.setenv("RUST_BACKTRACE", "full")
    for _ in range(3):
        assert_good(engine, good)
    engine.close()
    assert log.read_text() == "1 1 0\n"


def test_files_in_the_current_folder_do_not_disturb(
    engine: TractEngine, good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("numpy", "json", "t2n_core"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported from the current folder')")
    monkeypatch.chdir(tmp_path)
    assert_good(engine, good.relative_to(tmp_path))
