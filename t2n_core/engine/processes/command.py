"""Commands of others: run within limits of time and memory, with all that they start, and none left running."""

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
from t2n_core.engine.processes.guardian import guarded, start_guardian

_LAST_WORDS = 2.0
"""Seconds to wait for the rest of the output of a command that has ended."""
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that has ended."""

    exit_code: int
    stdout: str
    """The output, without the middle of a long one."""
    stderr: str
    killed: bool
    """True if it was killed here, for want of time."""


def execute(command: Sequence[str], timeout: float, memory: int | None, environment: Mapping[str, str]) -> Ended:
    """Run a command and return how it ended. Raises OSError if it cannot be started.

    What it leaves running is killed or not waited for: a process that holds its output may live on. `memory` is in
    bytes; `environment` is the whole one.
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
    with guarded(process):
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

        # a timer goes on where a test has stopped the clock of Python, by which `wait` measures its own limit
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
                drain.join(_LAST_WORDS)
    return Ended(process.returncode, stdout.text(), stderr.text(), killed)


def _limit(pid: int, memory: int) -> None:
    """Limit the memory of a process on Linux, where a lower limit of the user's shell stays."""
    if sys.platform == "linux":
        import resource

        for kind, wanted in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CORE, 0)):
            with contextlib.suppress(OSError, ValueError):
                hard = resource.prlimit(pid, kind)[1]
                limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
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


__all__ = ["Ended", "execute"]
