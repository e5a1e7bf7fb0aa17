"""A process that briefly outlives this one, and kills the commands that this one left running.

A worker notices through its pipe that its parent is gone. An external command reads no pipe: if a session is killed
while a command hangs, no process would be left to kill it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator

from t2n_core.engine.processes.environment import worker_environment


class _Guardian:
    """The parent's side: it writes the running process groups to the guardian's pipe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process, if none runs."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._release()
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", __name__],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    bufsize=0,
                    env=worker_environment(),
                    start_new_session=True,  # signals to the session's group must not end it
                )

    def write_line(self, line: str) -> None:
        """Write a line; if the guardian was killed, nothing happens, and the next command starts a new one."""
        with self._lock, contextlib.suppress(OSError, ValueError):
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.write(f"{line}\n".encode())

    def close(self) -> None:
        """Let the process end, and wait for it."""
        with self._lock:
            self._release()
            if self._process is not None:
                self._process.wait()
                self._process = None

    def abandon(self) -> None:
        """Close the pipe in a forked process: while it is open, its owner's exit goes unnoticed."""
        self._lock = threading.Lock()  # another thread of the parent may have locked it
        if self._process is not None:
            self._process.returncode = 0  # not this process's child
        self._release()
        self._process = None

    def _release(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()


_guardian = _Guardian()


@contextlib.contextmanager
def kill_on_exit(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Kill the process group of `process` if this process ends within the block, however it ends.

    Call `start_guardian` before the process is started.
    """
    _guardian.write_line(f"+{process.pid}")
    try:
        yield
    finally:
        _guardian.write_line(f"-{process.pid}")


def start_guardian() -> None:
    """Start the guardian of this process, if there is none."""
    _guardian.start()


def watch(lines: Iterable[str]) -> None:
    """Read which groups start (`+12`) and end (`-12`); at the end of the input, kill the remaining ones."""
    groups: set[int] = set()
    for line in lines:
        change = groups.add if line.startswith("+") else groups.discard
        change(int(line[1:]))
    for group in groups:
        with contextlib.suppress(OSError):
            if os.name == "posix":
                os.killpg(group, signal.SIGKILL)
            else:
                os.kill(group, signal.SIGTERM)


atexit.register(_guardian.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_guardian.abandon)

if __name__ == "__main__":
    watch(sys.stdin)
