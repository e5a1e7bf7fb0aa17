"""A thread that starts processes and lives as long as this one; when it ends, Linux ends children that request it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any


class _Starter:
    """The thread; a forked process has its own."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the thread, which a forked process does not have."""
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._wanted: SimpleQueue[tuple[Future[subprocess.Popen[bytes]], Sequence[str], Any]] = SimpleQueue()

    def start(self, command: Sequence[str], options: Any) -> subprocess.Popen[bytes]:
        """Return a process that the thread has started."""
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(target=self._serve, name="t2n starter", daemon=True)
                thread.start()
                self._thread = thread
        future: Future[subprocess.Popen[bytes]] = Future()
        self._wanted.put((future, command, options))
        return future.result()

    def _serve(self) -> None:
        while True:
            future, command, options = self._wanted.get()
            try:
                future.set_result(subprocess.Popen(command, **options))
            except BaseException as error:
                future.set_exception(error)
            del future  # the caller alone keeps the process


_starter = _Starter()


def start_process(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Return `subprocess.Popen(command, **options)`, started by a thread that lives as long as this process."""
    if sys.platform != "linux":
        return subprocess.Popen(command, **options)
    return _starter.start(command, options)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_starter.reset)
