"""Tell a wrong Khronos graph from rounding, by computing it in float64 with the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from t2n_core.check.sampling.sampler import double_outputs
from t2n_core.engine.khronos.engine import KhronosEngine
from t2n_core.parity.outcome import ROUNDING, Outcome
from t2n_core.parity.samples import Sample
from t2n_core.torch_graph.frontend.inputs import ModelInputs
from t2n_core.torch_graph.frontend.sources import Source

AGREES = 1e-6
"""Relative to the largest value of an output; float32 literals in the text alone lead to errors of about 1e-8."""


def recheck_in_float64(
    outcome: Outcome, archive: Path, samples: Sequence[Sample], source: Source, example: ModelInputs
) -> Outcome:
    """Return the outcome of a mismatch with the result as its hint, and as the fact `float64`."""
    try:
        run = source.run_with_float64_weights
        expected = [output for sample in samples for output in double_outputs(run, example, sample)]
        replies = KhronosEngine.shared().interpreter.run_double(archive, [sample.inputs for sample in samples]).outputs
        answered = [output for reply in replies for output in reply]
        errors = [_relative_error(a, b) for a, b in zip(expected, answered, strict=True) if a.dtype.kind == "f"]
    except Exception as cause:  # a model that cannot run in float64 is judged only in float32
        return replace(outcome, facts={**outcome.facts, "float64": f"not compared: {cause}"})
    largest = max(errors, default=0.0)
    if largest < AGREES:
        words = f"in float64 graph and model agree to {largest:.1g}: the graph is right, and the difference is rounding"
        facts = {"float64": words, ROUNDING: words}
    else:
        words = f"graph and model also differ in float64, by {largest:.2g}: the graph computes something else"
        facts = {"float64": words}
    error = None if outcome.error is None else replace(outcome.error, hint=words)
    return replace(outcome, error=error, facts={**outcome.facts, **facts})


def _relative_error(expected: Any, actual: Any) -> float:
    if expected.shape != actual.shape:
        return float("inf")
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    return float(np.abs(expected - actual).max(initial=0.0)) / scale
