"""Process that loads one tract library.

    python -m t2n_core.engine.tract.worker LIBRARY --sha256=DIGEST [--runtime=NAME] [--inline]

Frames of `wire.py` are read from descriptor 0 and written to the original descriptor 1; nothing else can write there,
since an engine's own output is redirected to descriptor 2. After a first `ready` (or `failed`), every job is answered
by the events of `job.py` and an `end` that states how the job's process ended. A session is a job that reads its steps
from the same descriptor (`session_job.py`), and ends with it.

Where the system can fork, each job runs in its own child, so that a panic, a hang or too much memory ends only that
child, while the library stays loaded here. With `--inline` the job runs here, and dies with the worker.
"""

from __future__ import annotations

import contextlib
import gc
import io
import math
import os
import select
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from t2n_core.engine.processes.bound import death_signal, end_with_parent
from t2n_core.engine.processes.channel import claim_channel
from t2n_core.engine.processes.excerpt import Excerpt
from t2n_core.engine.processes.memory import limit_process
from t2n_core.engine.processes.wire import PREFIX, Frame, frame_size, read_frame, widen_pipe, write_all, write_frame
from t2n_core.engine.protocol import Array
from t2n_core.engine.tract.driver import TractDriver
from t2n_core.engine.tract.job import Send, perform
from t2n_core.engine.tract.session_job import perform_session
from t2n_core.errors import EngineLoadError
from t2n_core.files import file_sha256

_CHUNK = 1 << 20
_LOOK = 2.0
"""Seconds between two checks that the parent lives: a process forked from it may keep the pipe open."""
_DYING = 2.0
"""Seconds that a child has to exit after its panic: out of memory, it can hang while it writes the backtrace."""


def main(arguments: Sequence[str]) -> int:
    requests, channel = claim_channel()
    if hasattr(signal, "SIGCHLD"):
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a parent that ignores it leaves no status of a child
    if hasattr(signal, "SIGINT"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which closes this process
    try:
        options = dict(argument.removeprefix("--").split("=", 1) for argument in arguments[1:] if "=" in argument)
        libraries = Libraries(arguments[0], options["sha256"], options.get("runtime"))
    except EngineLoadError as error:
        write_frame(channel, {"event": "failed", "message": str(error)})
        return 1
    write_frame(channel, {"event": "ready", "reported_version": libraries.own.reported_version})
    serve = serve_inline if "--inline" in arguments[1:] else serve_forking
    with contextlib.suppress(BrokenPipeError):  # the parent is gone: nothing is left to report to
        serve(libraries, requests, channel)
    return 0


def _load(library: Path, sha256: str, runtime: str | None) -> TractDriver:
    """Return the driver of a library, if it is still the chosen one. Raises EngineLoadError."""
    try:
        digest = file_sha256(library)
    except OSError as cause:
        raise EngineLoadError(f"{library} cannot be read: {cause.strerror}") from cause
    if digest != sha256:
        raise EngineLoadError(f"{library} has changed: it has the sha256 {digest}, and the engine is {sha256}")
    return TractDriver(library, runtime)


class Libraries:
    """The worker's own library, and libraries of jobs: each is loaded once and stays loaded."""

    def __init__(self, worker_path: str, sha256: str, runtime: str | None) -> None:
        """Load the worker's own. Raises EngineLoadError."""
        self.own = _load(Path(worker_path), sha256, runtime)
        self._runtime = runtime
        self._loaded: dict[tuple[str, str], TractDriver] = {(worker_path, sha256): self.own}

    def of(self, job: Frame) -> TractDriver:
        """Return the library for a job. Raises EngineLoadError."""
        library: Mapping[str, str] | None = job.header.get("library")
        if library is None:
            return self.own
        key = (library["path"], library["sha256"])
        if key not in self._loaded:
            self._loaded[key] = _load(Path(key[0]), key[1], self._runtime)
        return self._loaded[key]


def _refuse(channel: io.FileIO, error: EngineLoadError) -> None:
    write_frame(channel, {"event": "error", "message": str(error)})
    write_frame(channel, {"event": "end", "exit": 0, "killed": False, "stderr": ""})


def serve_inline(libraries: Libraries, requests: io.FileIO, channel: io.FileIO) -> None:
    while (job := read_frame(requests)) is not None:
        try:
            driver = libraries.of(job)
        except EngineLoadError as error:
            _refuse(channel, error)
            continue

        def send(header: Mapping[str, Any], arrays: Sequence[Array] = (), /) -> None:
            write_frame(channel, header, arrays)

        _perform(driver, job, send, requests)
        write_frame(channel, {"event": "end", "exit": 0, "killed": False, "stderr": ""})
        if "session" in job.header:
            return


def _perform(driver: TractDriver, job: Frame, send: Send, requests: io.FileIO) -> None:
    if "session" in job.header:
        perform_session(driver, job, send, lambda: read_frame(requests))
    else:
        perform(driver, job, send)


def serve_forking(libraries: Libraries, requests: io.FileIO, channel: io.FileIO) -> None:
    import resource  # noqa: F401  once here, not in every child

    death_signal()
    gc.freeze()  # a collection in a child would touch, and so copy, every page of this heap
    parent = os.getppid()
    while _wait_for_job(requests, parent) and (job := read_frame(requests)) is not None:
        try:
            driver = libraries.of(job)
        except EngineLoadError as error:
            _refuse(channel, error)
            continue
        parent_is_there = JobChild(driver, job, requests, channel, parent).attend()
        if not parent_is_there or "session" in job.header:
            return


def _wait_for_job(requests: io.FileIO, parent: int) -> bool:
    """Wait for a job; return False if the parent died and a process forked from it keeps the pipe open."""
    while not select.select([requests], [], [], _LOOK)[0]:
        if os.getppid() != parent:
            return False
    return True


class JobChild:
    """One forked child: its output is forwarded frame by frame, its stderr kept, its end reported."""

    def __init__(self, driver: TractDriver, job: Frame, requests: io.FileIO, channel: io.FileIO, parent: int) -> None:
        # a session may be idle between its steps; the parent ends one whose step is too slow
        self._deadline = math.inf if "session" in job.header else time.monotonic() + job.header["timeout"]
        self._requests, self._channel, self._parent = requests, channel, parent
        self._data, data_end = os.pipe()
        widen_pipe(data_end)
        self._noise, noise_end = os.pipe()
        worker = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            foreign = [self._data, self._noise, channel.fileno()]
            if "session" not in job.header:
                foreign.append(requests.fileno())
            _live_as_child(driver, job, data_end, noise_end, requests, foreign, worker)
        os.close(data_end)
        os.close(noise_end)
        self._killed = False
        self._stderr = Excerpt()
        self._buffer = bytearray()

    def attend(self) -> bool:
        """Wait until the child has ended; return False if the parent exited meanwhile."""
        try:
            parent_is_there = self._relay()
        except BaseException:
            self._kill()
            raise
        finally:
            os.close(self._data)
            os.close(self._noise)
            exit_code = self._reap()
        if parent_is_there:
            end = {"event": "end", "exit": exit_code, "killed": self._killed, "stderr": self._stderr.text()}
            write_frame(self._channel, end)
        return parent_is_there

    def _relay(self) -> bool:
        opened = {self._data, self._noise}
        poll = select.poll()
        for end in opened:
            poll.register(end, select.POLLIN)
        poll.register(self._requests, 0)  # only its end: the child reads the steps of a session
        while opened:
            left = self._deadline - time.monotonic()
            ready = {end for end, _ in poll.poll(1000 * min(max(left, 0.0), _LOOK))}
            if self._requests.fileno() in ready or os.getppid() != self._parent:
                self._kill()
                return False
            if left <= 0.0 and not ready:
                self._killed = True
                self._kill()
                return True
            for end in opened & ready:
                if not (data := os.read(end, _CHUNK)):
                    opened.discard(end)
                    poll.unregister(end)
                elif end == self._data:
                    self._pass_on(data)
                else:
                    self._stderr.add(data)
                    if self._stderr.begins_with_panic():
                        self._deadline = min(self._deadline, time.monotonic() + _DYING)
        return True

    def _pass_on(self, data: bytes) -> None:
        """Forward whole frames only: a child that dies inside one must not corrupt the channel."""
        self._buffer += data
        while len(self._buffer) >= PREFIX.size:
            size = PREFIX.size + sum(frame_size(self._buffer[: PREFIX.size]))
            if len(self._buffer) < size:
                return
            with memoryview(self._buffer) as view:
                write_all(self._channel, view[:size])
            del self._buffer[:size]

    def _reap(self) -> int:
        """Return the exit code, negative for a signal. A child that lives on without pipes has until the deadline."""
        pause = 0.0005
        while True:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > self._deadline:
                self._killed = True
                self._kill()
            time.sleep(pause)
            pause = min(2 * pause, 0.02)

    def _kill(self) -> None:
        os.kill(self._pid, signal.SIGKILL)  # not reaped yet, so the id is still this child's


def _live_as_child(
    driver: TractDriver,
    job: Frame,
    data_end: int,
    noise_end: int,
    requests: io.FileIO,
    foreign: Sequence[int],
    worker: int,
) -> None:
    """Run the job in a forked child. Never returns; exits without the exit handlers of the worker."""
    code = 70
    try:
        for descriptor in foreign:
            os.close(descriptor)
        os.dup2(noise_end, 1)
        os.dup2(noise_end, 2)
        _bind_to(worker)
        limit_process(job.header["memory_limit"])
        with os.fdopen(data_end, "wb", buffering=0) as pipe:

            def send(header: Mapping[str, Any], arrays: Sequence[Array] = (), /) -> None:
                write_frame(pipe, header, arrays)

            _perform(driver, job, send, requests)
        code = 0
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode(errors="replace"))
    finally:
        os._exit(code)


def _bind_to(worker: int) -> None:
    """End this child with the worker on Linux; elsewhere the parent kills the process group."""
    end_with_parent()
    if os.getppid() != worker:
        raise ProcessLookupError("the worker ended while it forked this child")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
