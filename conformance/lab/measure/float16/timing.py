"""Times of archives of one architecture, measured in turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from conformance.lab.archives import time_in_process
from conformance.lab.timing import ratio
from t2n_core.engine import ResolvedEngine
from t2n_core.engine.protocol import Array
from t2n_core.errors import EngineError

ROUNDS = 11


def time_archives(
    engine: ResolvedEngine, archives: Mapping[str, Path], inputs: Sequence[Array], folder: Path, rounds: int = ROUNDS
) -> dict[str, float]:
    """Return CPU milliseconds of a run, by archive, and under `NAME ratio` the ratio to the first one.

    A ratio is the median over turns of neighbours, each with its fastest run. Raises EngineError.
    """
    arrays = folder / "inputs.npz"
    np.savez(arrays, **{f"input{index}": array for index, array in enumerate(inputs)})
    case = {"name": "", "arrays": str(arrays), "archives": {name: str(path) for name, path in archives.items()}}
    (answer,) = time_in_process(engine, [case], rounds)
    figures = answer["archives"]
    failures = [entry["error"] for entry in figures.values() if "error" in entry]
    if failures or not figures:
        raise EngineError(answer.get("died") or failures[0])
    first = figures[next(iter(archives))]["turns_ms"]
    times = {name: min(figures[name]["turns_ms"]) for name in archives}
    return times | {f"{name} ratio": ratio(figures[name]["turns_ms"], first) for name in archives}
