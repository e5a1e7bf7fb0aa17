"""Sessions of 16 cells, one of which is wrong, of which one process gets a signal."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from conformance.lab.processes import ENVIRONMENT

CELLS: Final = 16
WRONG: Final = 5
KINDS: Final = ("controller", "engine", "controller", "worker")
"""Which process gets the signal, in turns."""
_SIGNALS: Final[Mapping[str, tuple[signal.Signals, ...]]] = {
    "controller": (signal.SIGKILL, signal.SIGTERM, signal.SIGINT),
    "worker": (signal.SIGKILL, signal.SIGTERM, signal.SIGINT),
    "engine": (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGSTOP),
}
_MARK: Final = "T2N_KILLS"
"""The variable by which the processes of a session are found."""
_SECONDS: Final = 300.0
"""Most seconds of a session on a busy machine."""
_REPORT: Final = "site"
_TESTS: Final = f"""
import pytest
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, is_wrong):
        super().__init__()
        self.linear, self.is_wrong = nn.Linear(4, 3), is_wrong

    def forward(self, x):
        y = torch.tanh(self.linear(x))
        return y * 2 if self.is_wrong and torch.compiler.is_exporting() else y

@pytest.mark.nnef_export
@pytest.mark.parametrize("number", range({CELLS}))
def test_net(number):
    return Net(number == {WRONG}), {{"x": torch.linspace(-3, 3, 20).reshape(5, 4)}}
"""


@dataclass(frozen=True, slots=True)
class Killed:
    """A session after its process got the signal, and ended."""

    folder: Path
    kind: str
    signal: signal.Signals
    has_arrived: bool
    """False if the session ended before the record at which the signal was due."""
    records: int
    status: int | None
    """Exit status; None if it had to be ended."""
    left: tuple[str, ...]
    """Command lines of the processes that were left."""

    @property
    def file(self) -> Path:
        return self.folder / _REPORT / "matrix.jsonl"

    @property
    def log(self) -> str:
        return (self.folder / "log.txt").read_text(errors="replace")


def kill_one(folder: Path, kind: str, drawn: random.Random, tract: str) -> Killed:
    """Run a session, and send a signal to one of its processes after a random number of records."""
    folder.mkdir(parents=True)
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_nets.py").write_text(_TESTS)
    mark = f"{folder.name}-{os.getpid()}-{time.monotonic_ns()}"
    chosen, due = drawn.choice(_SIGNALS[kind]), drawn.randrange(CELLS - 1)
    pause, fraction = drawn.uniform(0, 0.2), drawn.random()
    more = ["-n", "2"] if kind == "worker" else ["--t2n-timeout=6"]
    session = _start(folder, tract, [*more], {_MARK: mark})
    file, hit, records, end = folder / _REPORT / "matrix.jsonl", False, 0, time.monotonic() + _SECONDS
    while session.poll() is None and time.monotonic() < end:
        if not hit and (records := _count(file)) >= due and records:
            time.sleep(pause)
            targets = [session.pid] if kind == "controller" else _targets(mark, kind, session.pid)
            if targets:
                os.kill(targets[int(fraction * len(targets))], chosen)
                hit = session.poll() is None
        time.sleep(0.005)
    status = session.poll()
    if status is None:
        session.kill()
        session.wait()
    return Killed(folder, kind, chosen, hit, records, status, tuple(_end_of_all(mark)))


def resume(killed: Killed, tract: str) -> int:
    """Complete a session, and return its exit status."""
    session = _start(killed.folder, tract, ["--t2n-resume"], {})
    return session.wait(2 * _SECONDS)


def _start(folder: Path, tract: str, more: list[str], marks: Mapping[str, str]) -> subprocess.Popen[bytes]:
    common = ["-q", "-p", "no:cacheprovider", f"--t2n-tract={tract}", f"--t2n-report={_REPORT}"]
    command = [sys.executable, "-m", "pytest", *common, *more]
    with (folder / "log.txt").open("ab") as log:
        environment = {**os.environ, **ENVIRONMENT, **marks}
        return subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL)


def _count(file: Path) -> int:
    try:
        return file.read_bytes().count(b'"type":"cell"')
    except OSError:
        return 0


def _targets(mark: str, kind: str, controller: int) -> list[int]:
    word = "t2n_core.engine" if kind == "engine" else "-c import sys;exec("
    return [pid for pid, command in _processes(mark) if word in command and pid != controller]


def _processes(mark: str) -> Iterator[tuple[int, str]]:
    """Yield process id and command line of the processes of a session that run or are stopped."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{_MARK}={mark}".encode() not in (folder / "environ").read_bytes().split(b"\0"):
                continue
            if (folder / "stat").read_text().rpartition(")")[2].split()[0] != "Z":
                yield int(folder.name), (folder / "cmdline").read_text(errors="replace").replace("\0", " ")
        except OSError:
            continue


def _end_of_all(mark: str) -> list[str]:
    """Wait for the end of a session's processes; end and return the remaining ones."""
    for _ in range(60):
        if not (left := list(_processes(mark))):
            return []
        time.sleep(0.1)
    for pid, _ in left:
        os.kill(pid, signal.SIGKILL)
    return [command[:100] for _, command in left]
