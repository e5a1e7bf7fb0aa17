"""The parent's side of a worker: start it, send it jobs, enforce time limits, and leave nothing running."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from t2n_core.engine.processes.environment import command_in, single_threaded_environment, worker_environment
from t2n_core.engine.processes.excerpt import Excerpt
from t2n_core.engine.processes.starter import start_process
from t2n_core.engine.processes.wire import Frame, WireError, read_frame, write_frame
from t2n_core.engine.protocol import Array

START_TIMEOUT = 120.0
"""Seconds until a worker must be ready; it takes a tenth of one on an idle machine."""
CLOSE_TIMEOUT = 5.0
_PAUSE = 0.002


class WorkerDied(Exception):  # noqa: N818  the event, as the caller handles it
    """Raised if the channel ended or the watchdog killed the process; see `exit_code` and `stderr`."""

    def __init__(self, exit_code: int | None, stderr: str, *, killed_by_us: bool) -> None:
        super().__init__(f"worker ended with {exit_code}")
        self.exit_code = exit_code
        self.stderr = stderr
        self.killed_by_us = killed_by_us


class WorkerProcess:
    """A started worker. Every method may raise WorkerDied, after which the object is unusable."""

    def __init__(
        self,
        module: str,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        python: Path | None = None,
    ) -> None:
        """Start the module without waiting until it is ready; `wait_ready` waits.

        The variables of `environment` are added to `worker_environment`. `python` is another environment's interpreter;
        its packages precede this process's.
        """
        command = [sys.executable, "-P", "-m", module] if python is None else command_in(python, module)
        self._process = start_process(
            [*command, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env={**(single_threaded_environment if python else worker_environment)(), **(environment or {})},
            start_new_session=True,  # Ctrl-C in the terminal does not reach it, and the group can be killed at once
        )
        self._owner = os.getpid()
        self._killed = False
        self._stderr = Excerpt()
        self._drain = threading.Thread(target=self._drain_stderr, name="t2n engine stderr", daemon=True)
        self._drain.start()

    @property
    def usable(self) -> bool:
        """Return False once it has ended, and in a fork of the process that started it."""
        return self._owner == os.getpid() and self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_ready(self) -> Frame:
        """Wait for the first frame and return it: `ready` or `failed`."""
        with self._watchdog(START_TIMEOUT):
            return self._read_frame()

    def converse(
        self,
        header: Mapping[str, Any],
        arrays: Sequence[Array],
        *,
        timeout: float,
        on_event: Callable[[Frame], None] | None = None,
        until: Container[str] = ("end",),
    ) -> Frame:
        """Send one job, hand its events to `on_event`, return the first of `until`; kill after `timeout` seconds."""
        with self._watchdog(timeout):
            # a worker that closed its input may have sent the reason before; if not, reading fails
            with contextlib.suppress(OSError):
                write_frame(self._stream(self._process.stdin), header, arrays)
            while (frame := self._read_frame()).header["event"] not in until:
                if on_event is not None:
                    on_event(frame)
            return frame

    def kill(self) -> None:
        """Kill it at once, with its children."""
        if self._owner != os.getpid():
            return
        self._kill_group()
        self._process.wait()
        self._release()

    def close(self) -> None:
        """Ask it to end by closing its input; kill it if it does not."""
        if self._owner != os.getpid():
            return
        with contextlib.suppress(OSError):
            self._stream(self._process.stdin).close()
        _wait(lambda: self._process.poll() is not None)
        self.kill()

    def abandon(self) -> None:
        """Close the pipes of a worker that is not usable, so that the owner's end is noticed in a forked process."""
        if self._owner != os.getpid():
            self._process.returncode = 0  # not this process's child
        self._release()

    def _read_frame(self) -> Frame:
        try:
            frame = read_frame(self._stream(self._process.stdout))
        except (WireError, ValueError, OSError) as cause:
            raise self._death() from cause
        if frame is None:
            raise self._death()
        return frame

    def _death(self) -> WorkerDied:
        """Release the rest of a worker with a broken channel, and return the error that states why it ended."""
        _wait(self._has_ended)  # it may be exiting, and then its own exit code counts
        killed = self._killed
        self._kill_group()
        exit_code = self._process.wait()
        self._drain.join(CLOSE_TIMEOUT)
        self._release()
        return WorkerDied(exit_code, self._stderr.text(), killed_by_us=killed)

    @contextlib.contextmanager
    def _watchdog(self, seconds: float) -> Iterator[None]:
        """Kill the worker after `seconds`; that also ends a blocking read or write in the body."""
        watchdog = threading.Timer(min(seconds, threading.TIMEOUT_MAX), self._kill_group)
        watchdog.daemon = True
        watchdog.start()
        try:
            yield
        except WorkerDied:
            raise
        except BaseException:  # such as KeyboardInterrupt: the rest of the answer is still in the pipe
            self.kill()
            raise
        finally:
            watchdog.cancel()

    def _has_ended(self) -> bool:
        """Return True if it has ended. Its exit code is not collected, so no other process gets its id yet."""
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except (AttributeError, ChildProcessError):  # not supported on every system, or already collected
            return True

    def _kill_group(self) -> None:
        """Kill the process group, even if its worker has ended."""
        if self._process.returncode is not None:
            return
        self._killed = True
        if os.name == "posix":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()

    def _drain_stderr(self) -> None:
        stream = self._stream(self._process.stderr)
        with contextlib.suppress(OSError, ValueError):
            while data := stream.read(65536):
                self._stderr.add(data)

    def _release(self) -> None:
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            with contextlib.suppress(OSError):
                if stream:
                    stream.close()

    @staticmethod
    def _stream(stream: IO[bytes] | None) -> Any:
        return stream


def _wait(ended: Callable[[], bool]) -> None:
    """Wait briefly for the end of a process; pauses are counted, since a test may have stopped Python's clock."""
    for _ in range(round(CLOSE_TIMEOUT / _PAUSE)):
        if ended():
            return
        time.sleep(_PAUSE)
