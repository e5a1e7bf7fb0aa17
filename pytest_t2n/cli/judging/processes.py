"""Processes of this machine that judge units."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from types import ModuleType

from pytest_t2n.cli.judging.spread import MOST_TRIES
from pytest_t2n.cli.judging.unit import Unit, judge, pack_unit

_LOADED = ("pytest_t2n.cli.judging.unit", "t2n_core.parity.check", "t2n_core.engine", "t2n_core.npz")
"""Modules that processes load before their first unit."""


class LocalWorkers:
    """Processes of this machine; each ends at once when this object is closed, or this process dies."""

    def __init__(self, width: int) -> None:
        self.width = width
        # no fork: this process has threads
        self._context = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
        if sys.platform != "win32":
            self._context.set_forkserver_preload(list(_LOADED))
        self._leashes: list[Connection] = []
        self._pool: ProcessPoolExecutor | None = None

    def executor(self) -> Executor:
        """Return new processes to replace existing ones."""
        self.close()
        theirs, ours = self._context.Pipe(duplex=False)
        self._leashes = [theirs, ours]
        self._pool = ProcessPoolExecutor(self.width, self._context, _begin, (theirs,))
        return self._pool

    def tries_after(self, error: Exception) -> int:
        """Return how often a unit with this error may be tried."""
        return MOST_TRIES

    def check(self) -> None:
        """Do nothing: a process can always be started."""

    def submit(self, executor: Executor, unit: Unit) -> Future[bytes]:
        """Send a unit to a process. Raises BrokenExecutor."""
        with _without_main():
            return executor.submit(judge, pack_unit(unit))

    def close(self) -> None:
        """End all processes, including busy ones."""
        for leash in self._leashes:
            leash.close()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        self._leashes, self._pool = [], None


@contextmanager
def _without_main() -> Iterator[None]:
    """Start processes without the main program, whose file they would otherwise run again."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _begin(leash: Connection) -> None:
    """Prepare a process: it ends once the other end of `leash` is closed. Only its parent handles Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        with suppress(EOFError, OSError):
            leash.recv_bytes()
        os._exit(1)  # engines of this process end with their pipes

    threading.Thread(target=watch, daemon=True, name="t2n leash").start()


@contextmanager
def local_workers(width: int) -> Iterator[LocalWorkers]:
    """Yield processes of this machine, and end them when the block exits."""
    workers = LocalWorkers(width)
    try:
        yield workers
    finally:
        workers.close()
