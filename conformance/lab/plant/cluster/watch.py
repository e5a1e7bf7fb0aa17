"""What the processes of a run hold while it lasts, and what is left of them after it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

_PERIOD = 0.5
_PATIENCE = 20.0
"""Seconds for processes to see that those which started them are gone."""
_SWEEP = "from t2n_core.scratch import scratch_folder\nwith scratch_folder(): pass"


class Watch:
    """Looks at all processes whose environment names a folder; `handles` and `memory` are the most that one held."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look_often, daemon=True)
        self.handles: dict[str, int] = {}
        self.memory: dict[str, int] = {}
        """MB. Both by the kind of process: `client`, `scheduler`, `worker`, `engine`."""

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look_often(self) -> None:
        while not self._ended.wait(_PERIOD):
            for process in processes_of(self._folder):
                try:
                    kind, handles, memory = _kind(process), len(os.listdir(process / "fd")), _memory(process)
                except OSError:  # it has ended
                    continue
                self.handles[kind] = max(handles, self.handles.get(kind, 0))
                self.memory[kind] = max(memory, self.memory.get(kind, 0))

    def __str__(self) -> str:
        return "; ".join(f"{kind} {self.memory[kind]} MB, {self.handles[kind]} handles" for kind in sorted(self.memory))


def left_behind(folder: Path) -> list[str]:
    """Return the processes that still run, and the files in temporary folders that the next session does not remove.

    Dask's folders are not counted: it removes killed workers' folders when the next worker starts.
    """
    ended = time.monotonic() + _PATIENCE
    while (running := list(processes_of(folder))) and time.monotonic() < ended:
        time.sleep(_PERIOD)
    leftovers = [f"process {process.name}: {_kind(process)}" for process in running]
    for temporary in folder.glob("*/tmp"):
        subprocess.run([sys.executable, "-c", _SWEEP], env={**os.environ, "TMPDIR": str(temporary)}, check=True)
        leftovers += [str(path) for path in temporary.iterdir() if not path.name.startswith("dask-")]
    return leftovers


def processes_of(folder: Path) -> Iterator[Path]:
    """Yield the entries in /proc of processes whose temporary folder is inside a folder."""
    mark = f"TMPDIR={folder}{os.sep}".encode()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes():
                yield entry
        except OSError:
            continue


def _kind(process: Path) -> str:
    line = (process / "cmdline").read_bytes()
    kinds = {b"t2n_core.engine": "engine", b"pytest_t2n.cli": "client", b"scheduler": "scheduler"}
    return next((kind for word, kind in kinds.items() if word in line), "worker")


def _memory(process: Path) -> int:
    lines = (process / "status").read_text().splitlines()
    return next((int(line.split()[1]) >> 10 for line in lines if line.startswith("VmRSS:")), 0)
