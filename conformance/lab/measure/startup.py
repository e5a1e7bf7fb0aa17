"""What a process pays before it does anything: whole processes, in turns.

Wall time is the median, CPU time the least: what another process on the same core takes away only ever adds to it.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from conformance.lab.machine import cpu_of_children
from conformance.lab.timing import Stopwatch

ROUNDS = 9
PLAIN = ["-m", "pytest", "-p", "no:cacheprovider"]
SUITE = """
import pytest

@pytest.mark.nnef_export(target="tract")
@pytest.mark.parametrize("size", range(20))
def test_it(size):
    return None
"""
COMMANDS: dict[str, Sequence[str]] = {
    "pytest --help -p no:t2n": [*PLAIN, "--help", "-p", "no:t2n"],
    "pytest --help": [*PLAIN, "--help"],
    "pytest --collect-only -p no:t2n": [*PLAIN, "--collect-only", "test_suite.py", "-p", "no:t2n"],
    "pytest --collect-only": [*PLAIN, "--collect-only", "test_suite.py"],
    "import torch": ["-c", "import torch"],
    "import torch, t2n_core": ["-c", "import torch, t2n_core"],
    "import torch, and the converter": ["-c", "import torch; from t2n_core import TractNNEF, export_model_to_nnef"],
    "t2n --help": ["-m", "pytest_t2n.cli", "--help"],
}
ADDED = {
    "the plugin to `pytest --help`": ("pytest --help", "pytest --help -p no:t2n"),
    "the plugin to the collection of a suite with the marker": (
        "pytest --collect-only",
        "pytest --collect-only -p no:t2n",
    ),
    "`import t2n_core` to `import torch`": ("import torch, t2n_core", "import torch"),
    "the converter itself, which loads on first use": ("import torch, and the converter", "import torch"),
}
"""What is added -> the process with it and the one without."""


def measure(rounds: int = ROUNDS) -> dict[str, dict[str, float]]:
    """{command: wall and CPU seconds}, without this checkout's own pytest settings.

    Compiled files are kept, as they are on a user's machine, but in a folder of this run.
    """
    wall: dict[str, list[float]] = {name: [] for name in COMMANDS}
    cpu: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_suite.py").write_text(SUITE, encoding="utf-8")
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = str(Path(folder, "compiled"))
        for turn in range(rounds + 1):
            for name, arguments in COMMANDS.items():
                before, watch = cpu_of_children(), Stopwatch()
                command = [sys.executable, *arguments]
                subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
                seconds, used = watch.wall, cpu_of_children() - before
                if turn:  # the first one compiles
                    wall[name].append(seconds)
                    cpu[name].append(used)
    return {n: {"wall_s": statistics.median(wall[n]), "cpu_s": min(cpu[n])} for n in COMMANDS}
