"""Measure what a pytest session costs with nothing left out: whole processes, in turns, as ratios within one run.

CPU seconds cover the session with all of its processes. Wall time is only used for `-n 2` against one process.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.lab.machine import cpu_of_children
from conformance.lab.timing import Stopwatch

ROUNDS = 5
LARGE_ROUNDS = 1
"""Rounds of the processes with all cells, each of which takes as long as all the others."""
CELLS = 300
COLLECTED = 1000
ENGINE = "0.23"

NETS = """
import torch

torch.set_num_threads(1)

def net(n):
    torch.manual_seed(n)
    a, b = 3 + n % 7, 5 + n % 11
    if n % 4 == 0:
        return torch.nn.Linear(a, b).eval(), torch.randn(2, a)
    if n % 4 == 1:
        return torch.nn.ReLU().eval(), torch.randn(2, a, b)
    if n % 4 == 2:
        return torch.nn.Conv2d(a, b, 3).eval(), torch.randn(1, a, 9 + n % 5, 11)
    return torch.nn.GRU(a, b, batch_first=True).eval(), torch.randn(2, 4 + n % 3, a)
"""
CAPTURE = """
import sys
from nets import net, torch

for n in range(int(sys.argv[1])):
    model, x = net(n)
    torch.export.export(model, (x,), strict=False)
"""
SUITE = """
import pytest
from nets import net

@pytest.mark.nnef_export(target="tract")
@pytest.mark.parametrize("n", range({cells}))
def test_net(n):
    return net(n)
"""
COLLECTION = """
import pytest
{imports}

@pytest.mark.nnef_export(target="tract")
@pytest.mark.parametrize("n", range({cells}))
def test_net(n):
    return None
"""
_PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")


@dataclass(frozen=True)
class Ratio:
    """A process, its reference process, and how many times the reference's time it may take."""

    what: str
    command: Sequence[str]
    against: Sequence[str]
    most: float
    by_wall: bool = False
    without: tuple[Sequence[str], Sequence[str]] | None = None
    """Smaller processes of both, whose time is subtracted: the first cell's, with all imports."""

    @property
    def commands(self) -> list[tuple[str, ...]]:
        """Return the arguments of all its processes."""
        return [tuple(command) for command in (self.command, self.against, *(self.without or ()))]


def ratios(cells: int, collected: int) -> list[Ratio]:
    """Return the ratios of the suites that `write_suites` writes."""
    engine = f"--t2n-tract={ENGINE}"
    session, single_test = [*_PYTEST, "test_cells.py", engine], [*_PYTEST, "test_one.py", engine]
    collect = [*_PYTEST, "--collect-only"]
    collections = [
        Ratio(f"collecting {collected} marked tests of a file {description}, against without the plugin",
              [*collect, file, engine], [*collect, file, "-p", "no:t2n"], 1.3)
        for file, description in (("test_collected.py", "that imports torch"), ("test_bare.py", "without torch"))
    ]  # fmt: skip
    return [
        *collections,
        Ratio("a session of one Linear, against a script that captures it", single_test, ["capture.py", "1"], 1.35),
        Ratio(f"each of {cells} cells, against torch.export alone", session, ["capture.py", str(cells)], 1.5,
              without=(single_test, ["capture.py", "1"])),
        Ratio(f"{cells} cells with `-n 2`, against one process, wall time", [*session, "-n", "2"], session, 0.6,
              by_wall=True),
    ]  # fmt: skip


def write_suites(folder: Path, cells: int, collected: int) -> None:
    """Write the files that the commands of `ratios` run."""
    files = {
        "nets.py": NETS,
        "capture.py": CAPTURE,
        "test_cells.py": SUITE.format(cells=cells),
        "test_one.py": SUITE.format(cells=1),
        "test_collected.py": COLLECTION.format(cells=collected, imports="import torch"),
        "test_bare.py": COLLECTION.format(cells=collected, imports=""),
        "pytest.ini": "[pytest]\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def measure(
    say: Callable[[str], None],
    rounds: int = ROUNDS,
    large_rounds: int = LARGE_ROUNDS,
    cells: int = CELLS,
    collected: int = COLLECTED,
) -> list[dict[str, Any]]:
    """Return the medians of each ratio's processes in seconds, and what the ratio should be at most.

    A process of several ratios is measured once in each round.
    """
    all_ratios = ratios(cells, collected)
    times: dict[tuple[str, ...], list[dict[str, float]]] = {
        command: [] for ratio in all_ratios for command in ratio.commands
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_suites(folder, cells, collected)
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
        _seconds([*_PYTEST, "test_one.py", f"--t2n-tract={ENGINE}"], folder, environment)  # compiles, and fetches
        for turn in range(rounds):
            say(f"sessions, round {turn + 1} of {rounds}")
            for command, seconds in times.items():
                if turn < large_rounds or not {"test_cells.py", str(cells)} & set(command):
                    seconds.append(_seconds(command, folder, environment))
    return [_medians(ratio, times, cells) for ratio in all_ratios]


def _medians(
    ratio: Ratio, times: Mapping[tuple[str, ...], Sequence[Mapping[str, float]]], cells: int
) -> dict[str, Any]:
    """Return the row of a ratio; with subtracted processes, the seconds of each further cell."""
    kind = "wall_s" if ratio.by_wall else "cpu_s"
    ours, floor, *first = (statistics.median(run[kind] for run in times[command]) for command in ratio.commands)
    if first:
        ours, floor = ((all_ - baseline) / (cells - 1) for all_, baseline in zip((ours, floor), first, strict=True))
    return {"what": ratio.what, "ours_s": ours, "floor_s": floor, "most": ratio.most}


def _seconds(arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> dict[str, float]:
    before, watch = cpu_of_children(), Stopwatch()
    command = [sys.executable, *arguments]
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    return {"wall_s": watch.wall, "cpu_s": cpu_of_children() - before}
