"""What a process pays before it does anything: medians over whole processes, in turns."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

ROUNDS = 7
COMMANDS: dict[str, Sequence[str]] = {
    "pytest --help -p no:t2n": ["-m", "pytest", "--help", "-p", "no:t2n"],
    "pytest --help": ["-m", "pytest", "--help"],
    "import torch": ["-c", "import torch"],
    "import torch, t2n_core": ["-c", "import torch, t2n_core"],
    "t2n --help": ["-m", "pytest_t2n.cli", "--help"],
}


def measure(rounds: int = ROUNDS) -> dict[str, dict[str, float]]:
    """{command: wall and CPU seconds}, without this checkout's own pytest settings."""
    wall: dict[str, list[float]] = {name: [] for name in COMMANDS}
    cpu: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(rounds + 1):
            for name, arguments in COMMANDS.items():
                before, started = os.times(), time.perf_counter()
                subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, check=True)
                seconds, after = time.perf_counter() - started, os.times()
                if turn:  # the first one fills the file cache
                    wall[name].append(seconds)
                    used = after.children_user + after.children_system
                    cpu[name].append(used - before.children_user - before.children_system)
    return {n: {"wall_s": statistics.median(wall[n]), "cpu_s": statistics.median(cpu[n])} for n in COMMANDS}
