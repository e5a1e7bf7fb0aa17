"""Steps of a sequence in an engine, with the cache outside of it or inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from conformance.lab.timing import Stopwatch
from t2n_core.engine.protocol import Array
from t2n_core.engine.tract.driver import TractDriver, TractModel, TractRunnable

Step: TypeAlias = Callable[[Array], Array]
"""A function from tokens `[1, S]` to the logits of one step or more."""
_DTYPES = {"F16": np.float16, "F32": np.float32, "I64": np.int64}


def load(driver: TractDriver, archive: str, *transforms: str) -> TractRunnable:
    """Return a loaded archive, with these transforms of the engine applied. Raises EngineError."""
    model = driver.load(Path(archive))
    for transform in transforms:
        model.transform(transform)
    model.declutter()
    return model.into_runnable(optimise=True)


def input_shapes(model: TractModel) -> list[tuple[tuple[int | str, ...], Any]]:
    """Return extents and dtype of each input; a free extent is a text."""
    facts = []
    for _, fact in model.facts()["input"]:
        *extents, dtype = fact.split(",")
        facts.append((tuple(int(extent) if extent.isdigit() else extent for extent in extents), _DTYPES[dtype.upper()]))
    return facts


def with_cache(
    driver: TractDriver, runnable: TractRunnable, empty: Sequence[Array], of_one_token: TractRunnable | None = None
) -> Step:
    """Return a step of a new sequence whose caches are given again at each step, as tensors of the engine.

    Steps of a single token run in `of_one_token`, if it is given.
    """
    caches = [driver.make_tensor(cache) for cache in empty]

    def step(tokens: Array) -> Array:
        inputs = [driver.make_tensor(tokens), *caches]
        chosen = runnable if of_one_token is None or tokens.shape[1] > 1 else of_one_token
        logits, *caches[:] = chosen.run_tensors(inputs)
        values = driver.read_tensor(logits)
        driver.drop_tensors([*inputs, logits])
        return values

    return step


def with_state(runnable: TractRunnable) -> Step:
    """Return a step of a new sequence whose caches are the engine's own."""
    state = runnable.spawn()
    return lambda tokens: state.run([tokens])[0]


def run_steps(step: Step, prompt: Array, steps: int) -> tuple[list[float], list[int], list[Array]]:
    """Return CPU milliseconds, greedy token and logits of each step; the first one takes the prompt."""
    tokens, times, chosen, rows = prompt, list[float](), list[int](), list[Array]()
    for _ in range(steps):
        watch = Stopwatch()
        logits = step(tokens)
        times.append(1e3 * watch.cpu)
        rows.append(logits[0, -1].astype(np.float32))
        chosen.append(int(rows[-1].argmax()))
        tokens = np.array([[chosen[-1]]])
    return times, chosen, rows
