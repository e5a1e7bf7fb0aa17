"""External commands, run within limits of time and memory; they and their child processes never outlive the call."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from t2n_core.engine.processes.excerpt import Excerpt
from t2n_core.engine.processes.guardian import kill_on_exit, start_guardian

_DRAIN_TIMEOUT = 2.0
"""Seconds to wait for the rest of the output after a command has ended."""
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that has ended."""

    exit_code: int
    stdout: str
    """The output; a long one without its middle."""
    stderr: str
    killed: bool
    """True if it was killed here because of the time limit."""


def execute(command: Sequence[str], timeout: float, memory: int | None, environment: Mapping[str, str]) -> Ended:
    """Run a command and return how it ended. Raises OSError if it cannot be started.

    Processes that it leaves running are killed or not waited for: a process that holds its output open may survive.
    `memory` is in bytes; `environment` is the complete environment.
    """
    start_guardian()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    with kill_on_exit(process):
        if memory is not None:
            _limit(process.pid, memory)
        stdout, stderr = Excerpt(), Excerpt()
        drains = [
            threading.Thread(target=_drain, args=pipe, name="t2n command", daemon=True)
            for pipe in ((process.stdout, stdout), (process.stderr, stderr))
        ]
        for drain in drains:
            drain.start()
        killed = False

        def end() -> None:
            nonlocal killed
            killed = process.poll() is None
            _kill_group(process)

        # a timer still runs if a test has stopped Python's clock, by which `wait` measures its own limit
        watchdog = threading.Timer(min(max(timeout, 0.0), threading.TIMEOUT_MAX), end)
        watchdog.daemon = True
        watchdog.start()
        try:
            process.wait()
        finally:
            watchdog.cancel()
            _kill_group(process)
            process.wait()
            for drain in drains:
                drain.join(_DRAIN_TIMEOUT)
    return Ended(process.returncode, stdout.text(), stderr.text(), killed)


def _limit(pid: int, memory: int) -> None:
    """Limit the memory of a process on Linux; a lower limit of the user's shell is kept."""
    if sys.platform == "linux":
        import resource

        for kind, requested_limit in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CORE, 0)):
            with contextlib.suppress(OSError, ValueError):
                hard = resource.prlimit(pid, kind)[1]
                limit = requested_limit if hard == resource.RLIM_INFINITY else min(requested_limit, hard)
                resource.prlimit(pid, kind, (limit, limit))


def _drain(stream: IO[bytes], text: Excerpt) -> None:
    with stream, contextlib.suppress(OSError, ValueError):
        while data := os.read(stream.fileno(), _CHUNK):
            text.add(data)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
