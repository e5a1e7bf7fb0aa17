"""Measure a session's CPU seconds by stage: its stack is sampled every few milliseconds of CPU time.

    python -m conformance.lab.measure.sessions.stages

Engines run in separate processes, which are one row.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from conformance.lab.measure.sessions.quick import ENGINE, write_suites
from conformance.lab.pages.render import render

CELLS = 200

STAGES: Final[Mapping[str, Sequence[str]]] = {
    "imports": ("importlib._bootstrap",),
    "the tests themselves": ("/nets.py",),
    "PyTorch's capture": ("torch/export/_trace.py", "torch/export/__init__.py"),
    "around the capture": ("t2n_core/torch_graph/", "t2n_core/rewriter/", "t2n_core/export/"),
    "simplification": ("t2n_core/torch_graph/simplify/",),
    "lowering": ("t2n_core/op/", "t2n_core/lowering/", "t2n_core/nnef/"),
    "spec": ("t2n_core/nnef/legality.py", "t2n_core/nnef/spec.py"),
    "writing": ("t2n_core/nnef/archive.py", "t2n_core/nnef/writer.py"),
    "PyTorch's values": ("t2n_core/check/reference.py", "t2n_core/check/sampling/sampler.py"),
    "exchange with the engine": ("t2n_core/engine/",),
    "compare": ("t2n_core/parity/", "t2n_core/check/"),
    "records": ("pytest_t2n/records/", "pytest_t2n/control/", "pytest_t2n/run/export_summary.py"),
    "collection": ("pytest_t2n/collect/", "_pytest/python.py:pytest_pycollect", "_pytest/main.py:genitems"),
    "the plugin's runs": ("pytest_t2n/",),
    "pytest": ("_pytest/", "pluggy/"),
}
"""Stage -> parts of the `file:function` of its frames. The longest part that a frame contains counts."""
_FINAL: Final = ("imports", "the tests themselves", "PyTorch's capture")
"""Stages to which everything belongs that is called from them."""
COLLECTIONS = "collections of garbage"
"""Wherever they happen; most of the garbage is graphs of PyTorch's captures."""
OTHER = "start of Python, others"
ENGINES = "the engine's processes"

CONFTEST = '''
"""Samples the stack of the session by CPU time."""
import collections
import gc
import json
import os
import resource
import signal

from t2n_core.engine import pool

stacks = collections.Counter()

def collected(phase, info):
    """Is called at the end of a collection, where a signal that came during it is handled."""

def sample(_, frame):
    frames = []
    while frame is not None:
        frames.append(f"{frame.f_code.co_filename}:{frame.f_code.co_name}")
        frame = frame.f_back
    stacks[tuple(frames[::-1])] += 1

def pytest_unconfigure(config):
    signal.setitimer(signal.ITIMER_PROF, 0)
    pool.close_all()  # the time of a process counts once it has ended
    own, others = (resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    seconds = [of.ru_utime + of.ru_stime for of in (own, others)]
    with open(os.environ["T2N_STAGES"], "w") as file:
        json.dump([*seconds, [[list(stack), count] for stack, count in stacks.items()]], file)

gc.callbacks.append(collected)
signal.signal(signal.SIGPROF, sample)
signal.setitimer(signal.ITIMER_PROF, 0.002, 0.002)
'''


def stage_of(stack: Sequence[str]) -> str:
    """Return the stage of a stack, whose frames are `file:function` from the outside in."""
    if stack and stack[-1].endswith("conftest.py:collected"):
        return COLLECTIONS
    stage = OTHER
    for frame in stack:
        matching = [(len(part), stage) for stage, parts in STAGES.items() for part in parts if part in frame]
        if matching:
            stage = max(matching)[1]
        if stage in _FINAL:
            break
    return stage


def measure(cells: int = CELLS) -> dict[str, float]:
    """Return the CPU seconds of each stage in a session of different small nets on one engine."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_suites(folder, cells, 1)
        (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")
        stages_file = folder / "stages.json"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_cells.py"]
        environment = {**os.environ, "T2N_STAGES": str(stages_file)}
        command.append(f"--t2n-tract={ENGINE}")
        subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
        own_seconds, others, stacks = json.loads(stages_file.read_text(encoding="utf-8"))
    return {**seconds_by_stage(own_seconds, stacks), ENGINES: others}


def seconds_by_stage(seconds: float, stacks: Sequence[tuple[Sequence[str], int]]) -> dict[str, float]:
    """Return the shares of the stages in `seconds`, by how often their stacks were seen."""
    counts = dict.fromkeys([*STAGES, COLLECTIONS, OTHER], 0)
    for stack, count in stacks:
        counts[stage_of(stack)] += count
    total = sum(counts.values()) or 1
    return {stage: seconds * count / total for stage, count in counts.items()}


def table(stages: Mapping[str, float]) -> str:
    """Return the stages as Markdown, with their seconds relative to PyTorch's capture."""
    return render("stages", results={"stages": stages})


if __name__ == "__main__":
    print(table(measure()), end="")
