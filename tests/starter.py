"""Start programs as processes that have torch or pytest loaded; loading takes most of the time of a short program."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

SERVER = Path(__file__).with_name("fork_server.py")
FOR_SESSIONS = (
    "pytest", "execnet.gateway_io", "xdist.plugin", "xdist.dsession", "xdist.workermanage",
    "msgspec", "numpy", "packaging.specifiers", "rich.console", "sympy",
    "pytest_t2n.plugin", "pytest_t2n.control.start", "t2n_core.parity.check",
)  # fmt: skip
"""What all sessions load."""
FOR_EXPORTS = (*FOR_SESSIONS, "warm_up")
"""What programs load that export, and what their first export loads."""
FOR_MODELS = (*FOR_EXPORTS, "model_libraries")
"""What programs load that take a model of a library."""


class Starter:
    """Starts programs as forks of a process that has some modules loaded."""

    def __init__(self, modules: Sequence[str]) -> None:
        command = [sys.executable, str(SERVER), *modules]
        self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)

    def run(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        *,
        stdout: Path,
        stderr: Path,
        timeout: float,
    ) -> int:
        """Return the exit code of `pytest`, `t2n` or the path of a program, with its arguments.

        As many workers of xdist as `-n` asks for are forks, too.

        Raises:
            TimeoutError: it ran longer than so many seconds, and was killed.
        """
        request = {
            "command": list(command), "folder": str(folder), "environment": dict(environment),
            "stdout": str(stdout), "stderr": str(stderr), "workers": _workers_of(command),
        }  # fmt: skip
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(request).encode() + b"\n")
        process = int(self._server.stdout.readline())
        ended, _, _ = select.select([self._server.stdout], [], [], timeout)
        if not ended:
            os.kill(process, signal.SIGKILL)
        code = int(self._server.stdout.readline())
        if not ended:
            raise TimeoutError(f"{' '.join(command)}: killed after {timeout} seconds")
        return code


def _workers_of(command: Sequence[str]) -> int:
    """Return how many workers of xdist a command asks for."""
    if "-n" not in command:
        return 0
    number = command[command.index("-n") + 1]
    return len(os.sched_getaffinity(0)) if number == "auto" else int(number)


@cache
def starter(modules: tuple[str, ...]) -> Starter:
    """Return the one starter of this process with these modules; its server ends when this process does."""
    return Starter(modules)
