"""Times archives of one architecture in turns, in a process that holds nothing else: `python -m … < job > answer`."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from conformance.benchmarks.engine.timing import TimedArchive
from conformance.benchmarks.machine import ROOT
from t2n_core.engine import ResolvedEngine
from t2n_core.engine.tract.driver import TractDriver
from t2n_core.errors import EngineError

ROUNDS = 11
TURN = 0.02
"""Seconds that one archive runs before it is the next one's turn."""


def time_archives(
    engine: ResolvedEngine,
    archives: Mapping[str, Path],
    inputs: Sequence[np.ndarray[Any, Any]],
    folder: Path,
    rounds: int = ROUNDS,
) -> dict[str, float]:
    """Return CPU milliseconds of a run, by archive, and under `NAME ratio` the ratio to the first one.

    A ratio is the median over turns of neighbours, each with its fastest run. Raises EngineError.
    """
    np.savez(folder / "inputs.npz", *inputs)
    given = {name: str(path) for name, path in archives.items()}
    job = {"library": str(engine.library), "archives": given, "inputs": str(folder / "inputs.npz"), "rounds": rounds}
    child = subprocess.run(
        [sys.executable, "-m", "conformance.float16.timing"],
        cwd=ROOT, input=json.dumps(job), text=True, capture_output=True, check=False, timeout=300,
    )  # fmt: skip
    if child.returncode:
        raise EngineError(child.stderr[-300:])
    found: dict[str, float] = json.loads(child.stdout)
    return found


def main() -> None:
    job = json.load(sys.stdin)
    os.environ["RUST_BACKTRACE"] = "0"
    driver = TractDriver(Path(job["library"]))
    with np.load(job["inputs"]) as arrays:
        inputs = [arrays[f"arr_{place}"] for place in range(len(arrays.files))]
    ready = {name: TimedArchive(driver, Path(path), inputs) for name, path in job["archives"].items()}
    for turn in range(job["rounds"]):
        for timed in list(ready.values())[:: 1 if turn % 2 == 0 else -1]:
            timed.run_for(TURN)
    first = next(iter(ready.values()))
    answer: dict[str, float] = {}
    for name, timed in ready.items():
        answer[name] = 1e3 * min(timed.turns)
        pairs = zip(timed.turns, first.turns, strict=True)
        answer[f"{name} ratio"] = statistics.median(own / other for own, other in pairs)
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
