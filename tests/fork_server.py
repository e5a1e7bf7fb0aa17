"""Starts programs as forks of one process that has modules loaded already.

    python tests/fork_server.py MODULE...

Each line of the input is a request, as `Starter` of tests/starter.py writes it. The answer is the id of the process,
and in a second line its exit code.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import signal
import sys
from collections.abc import Callable
from typing import Any

MODULES_OF_COMMANDS = {"t2n": "pytest_t2n.cli"}


class Worker:
    """A forked process in which execnet starts a worker of xdist, with what execnet uses of `subprocess.Popen`."""

    def __init__(self) -> None:
        (their_input, our_output), (our_input, their_output) = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(our_output)
            os.close(our_input)
            os.dup2(their_input, 0)
            os.dup2(their_output, 1)
            _serve_execnet()
        os.close(their_input)
        os.close(their_output)
        self.stdin, self.stdout = os.fdopen(our_output, "wb"), os.fdopen(our_input, "rb")

    def wait(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def _serve_execnet() -> None:
    """Run what the other end of the pipe sends, as `python -c` of execnet does, and end."""
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.argv = ["-c"]
    line = sys.stdin.readline()
    if line:
        exec(eval(line), {"__name__": "__main__"})
    sys.stdout.flush()
    os._exit(0)


def allow_loaded_plugins() -> None:
    """Keep pytest from warning of a plugin whose asserts it cannot rewrite any more, as it was loaded before."""
    from _pytest.assertion.rewrite import AssertionRewritingHook

    AssertionRewritingHook._warn_already_imported = lambda hook, name: None


def serve() -> None:
    """Start one program after the other until the input ends."""
    for line in sys.stdin:
        process = os.fork()
        if process == 0:
            become(json.loads(line))
            return
        print(process, flush=True)
        _, status = os.waitpid(process, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def become(request: dict[str, Any]) -> None:
    """Run a program in this process as a fresh Python does, with its own folder, environment and files."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell with `&` ignores it, and forks inherit that
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    for number, name in enumerate((os.devnull, request["stdout"], request["stderr"])):
        file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(file, number)
        os.close(file)
    sys.argv = request["command"]
    program = sys.argv[0]
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = dict.fromkeys([os.path.dirname(program) or os.getcwd(), *filter(None, paths), *sys.path[1:]])
    use_forks([Worker() for _ in range(request["workers"])])
    if program.endswith(".py"):
        runpy.run_path(program, run_name="__main__")
    else:
        runpy.run_module(MODULES_OF_COMMANDS.get(program, program), run_name="__main__", alter_sys=True)


def use_forks(workers: list[Worker]) -> None:
    """Let the first workers that execnet starts be these; later ones, as after a crash, are processes as usual."""
    if not workers:
        return
    from execnet.gateway_base import Popen2IO
    from execnet.gateway_io import Popen2IOMaster

    start: Callable[..., None] = Popen2IOMaster.__init__

    def take_fork(io: Popen2IOMaster, args: list[str], execmodel: Any) -> None:
        if not workers:
            start(io, args, execmodel)
            return
        io.popen = worker = workers.pop(0)
        Popen2IO.__init__(io, worker.stdin, worker.stdout, execmodel)

    Popen2IOMaster.__init__ = take_fork


if __name__ == "__main__":
    for name in sys.argv[1:]:
        importlib.import_module(name)
    allow_loaded_plugins()
    gc.freeze()  # the garbage collection of a program then leaves out what was loaded before it
    serve()
