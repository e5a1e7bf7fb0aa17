"""Archives whose outputs change as much with rounded inputs as they differ in an engine, such as sums that cancel."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Final

import numpy as np

from t2n_core.engine.paths import on_path
from t2n_core.engine.protocol import Engine
from t2n_core.errors import T2NError
from t2n_core.parity.check import check_parity
from t2n_core.parity.evaluation.evaluator import Evaluator
from t2n_core.parity.evaluation.noise import Noise, with_noise
from t2n_core.parity.outcome import ErrorInfo, Outcome, Stage, Status
from t2n_core.parity.outcomes import WEAK_CHECK
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Array, Sample

_DRAWS: Final = 8
"""Evaluations with other noise, for the change of each element."""
_AMPLE: Final = 4.0
"""An element that differs by more than this many times its largest change is not off by rounding."""
_MOST_SECONDS: Final = 30.0
ILL_CONDITIONED: Final = "ill_conditioned"
"""Fact of an outcome: rounding alone changes the outputs as much as the engine does."""


def with_conditioning(mismatch: Outcome, engine: Engine, request: CheckRequest, *, standard: bool) -> Outcome:
    """Return the outcome of a mismatch with the definitions, weak if rounding explains it at each element.

    Inputs and weights are moved by one unit in the last place, as if an operation before had rounded them: an element
    may differ by a few times the resulting change, plus the tolerance. The whole check then has to pass, with its
    further runs and paths, against outputs that are moved towards the engine's by this much.
    """
    runner = on_path(engine, mismatch.path, mismatch.failed_sizes)
    end = time.monotonic() + _MOST_SECONDS
    moved = []
    for sample in request.samples:
        reply = runner.run(request.archive, [sample.inputs], timeout=request.timeout)
        changes = _largest_changes(sample, request, standard, end) if reply.status == "ok" else None
        if changes is None or len(reply.outputs[0]) != len(sample.expected):
            return mismatch
        expected = tuple(_towards(*three) for three in zip(sample.expected, reply.outputs[0], changes, strict=True))
        moved.append(replace(sample, expected=expected))
    if not check_parity(engine, replace(request, samples=moved)).passed:
        return mismatch
    message = "the outputs differ as much as inputs and weights that differ by rounding change them"
    hint = "give inputs whose sums do not cancel: --inputs x.npz"
    error = ErrorInfo.of(Stage.COMPARE, WEAK_CHECK, message, hint=hint)
    return replace(mismatch, status=Status.WEAK, error=error, facts={**mismatch.facts, ILL_CONDITIONED: True})


def _largest_changes(sample: Sample, request: CheckRequest, standard: bool, end: float) -> list[Array] | None:
    """Return the largest change of each element of the outputs by noise; None if there is no time."""
    largest = [np.zeros(array.shape) for array in sample.expected]
    for seed in range(_DRAWS):
        random = np.random.default_rng(seed)
        inputs = [with_noise(array, 1, random) for array in sample.inputs]
        try:
            near = Evaluator.shared().evaluate(
                request.archive,
                inputs,
                standard=standard,
                seconds=max(0.0, end - time.monotonic()),
                noise=Noise(1, seed),
            )
        except T2NError:
            return None
        for index, (expected, tensor) in enumerate(zip(sample.expected, near.values(), strict=True)):
            if tensor.array.shape != expected.shape or expected.dtype.kind != "f":
                continue
            change = np.abs(tensor.array - expected.astype(np.float64))
            largest[index] = np.maximum(largest[index], np.where(np.isfinite(change), change, 0))
    return largest


def _towards(expected: Array, actual: Array, change: Array) -> Array:
    """Return the expected elements, moved towards the actual ones by what rounding explains."""
    if actual.shape != expected.shape or actual.dtype.kind != "f" or expected.dtype.kind != "f":
        return expected
    difference = actual.astype(np.float64) - expected.astype(np.float64)
    by = np.clip(difference, -_AMPLE * change, _AMPLE * change)
    moved: Array = (expected + np.where(np.isfinite(difference), by, 0)).astype(expected.dtype)
    return moved
