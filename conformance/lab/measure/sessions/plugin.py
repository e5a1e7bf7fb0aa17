"""What the plugin itself costs per cell: whole pytest sessions of a generated suite.

Export and engine are left out at their lowest layer: the first archive of each version is given again, and the engine
answers with the expected values. What is left is the plugin's own work (cells, records, evidence, archives'
hashes, comparison, the book of the session), and pytest's, which the same number of plain tests without the plugin
shows: once in a process that has loaded PyTorch's exporter as well, and once without. Around each test pytest looks
through all loggers six times, and PyTorch has hundreds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from conformance.lab.machine import VERSIONS
from conformance.lab.processes import ENVIRONMENT

CASES = (100, 500, 2000)

CONFTEST = '''
"""Export and engine from memory."""
import os
from pathlib import Path

def pytest_sessionstart(session):
    if session.config.getoption("numprocesses", None) and not hasattr(session.config, "workerinput"):
        return  # the controller of xdist runs no test
    from dataclasses import replace
    from t2n_core.engine.tract.engine import TractEngine
    from t2n_core.export.model import ModelExport

    plain_to, plain_run, results, replies = ModelExport.to, TractEngine.run, {}, {}

    def to(self, target, path, **more):
        if target.version not in results:
            kept = Path(os.environ["T2N_BENCH_FOLDER"]) / f"{os.getpid()}-{target.version}.tar"
            results[target.version] = plain_to(self, target, kept, **more)
            results[target.version].samples
        result = results[target.version]
        self._captures = result.export._captures
        os.link(result.archive, path)
        return replace(result, archive=path)

    def run(self, archive, batches, **more):
        if self.version not in replies:
            replies[self.version] = plain_run(self, archive, batches, **more)
        return replies[self.version]

    ModelExport.to, TractEngine.run = to, run
'''
SUITE = """
import pytest
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

NET, X = Net().eval(), torch.randn(2, 3)

@pytest.mark.nnef_export(target="tract")
@pytest.mark.parametrize("number", range({cases}))
def test_net(number):
    return NET, X
"""
PLAIN = """
import pytest

@pytest.mark.parametrize("number", range({cells}))
def test_net(number):
    return None
"""
WITH_TORCH = """
import torch
torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
"""
_PEAK = """
import resource, sys
import pytest
status = pytest.main(sys.argv[2:])
usage = resource.getrusage(resource.RUSAGE_SELF)  # its ru_maxrss is that of the parent, where that was larger
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:"))
open(sys.argv[1], "w").write(f"{peak} {usage.ru_utime + usage.ru_stime}")
sys.exit(status)
"""


def measure(say: Callable[[str], None], cases: Sequence[int] = CASES) -> list[dict[str, float]]:
    """Seconds and megabytes of sessions, by their number of cells.

    CPU seconds of the session, and of the same number of plain tests with PyTorch loaded and without; CPU seconds and
    MB of xdist's controller of two workers, with records and without.
    """
    figures = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _session(folder, SUITE.format(cases=2), [], with_plugin=True)  # compiles, and takes engines from the network
        for count in cases:
            cells = count * len(VERSIONS)
            say(f"sessions of {cells} cells")
            ours = _session(folder, SUITE.format(cases=count), [], with_plugin=True)
            plain = _session(folder, WITH_TORCH + PLAIN.format(cells=cells), [], with_plugin=False)
            bare = _session(folder, PLAIN.format(cells=cells), [], with_plugin=False)
            spread = _session(folder, SUITE.format(cases=count), ["-n", "2"], with_plugin=True)
            alone = _session(folder, PLAIN.format(cells=cells), ["-n", "2"], with_plugin=False)
            figures.append(
                {
                    "cells": cells,
                    "cpu_s": ours["cpu_s"],
                    "plain_cpu_s": plain["cpu_s"],
                    "bare_cpu_s": bare["cpu_s"],
                    "controller_mb": spread["peak_mb"],
                    "plain_controller_mb": alone["peak_mb"],
                    "controller_cpu_s": spread["cpu_s"],
                    "plain_controller_cpu_s": alone["cpu_s"],
                }
            )
    return figures


def _session(folder: Path, suite: str, options: Sequence[str], *, with_plugin: bool) -> dict[str, float]:
    """Return peak memory and CPU of the main process, without engines and workers."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    (work / "conftest.py").write_text(CONFTEST if with_plugin else "", encoding="utf-8")
    (work / "test_generated.py").write_text(suite, encoding="utf-8")
    (work / "pytest.ini").write_text("[pytest]\nfilterwarnings = ignore\n", encoding="utf-8")
    peak = folder / "peak"
    arguments = ["-q", "-p", "no:cacheprovider", "test_generated.py", *options]
    arguments += [f"--t2n-tract={','.join(VERSIONS)}", "--t2n-report=report"] if with_plugin else ["-p", "no:t2n"]
    environment = {**os.environ, **ENVIRONMENT, "T2N_BENCH_FOLDER": str(folder)}
    command = [sys.executable, "-c", _PEAK, str(peak), *arguments]
    subprocess.run(command, cwd=work, env=environment, check=True, stdout=subprocess.DEVNULL)
    kilobytes, seconds = peak.read_text().split()
    return {"peak_mb": int(kilobytes) / 1024, "cpu_s": float(seconds)}
