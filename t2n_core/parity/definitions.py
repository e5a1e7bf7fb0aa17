"""Samples of an archive alone: the definitions of its operators give the outputs, without a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from t2n_core.engine.protocol import Engine
from t2n_core.errors import MalformedArchiveError
from t2n_core.parity.check import check_parity
from t2n_core.parity.evaluation.evaluator import Evaluator
from t2n_core.parity.ill_conditioned import with_conditioning
from t2n_core.parity.outcome import Outcome, Status
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Array, Sample

DEFINITIONS: Final = "the definitions of the operators"
"""The reference of such samples in messages."""
_HINT: Final = "an engine that loads it reads a form that is not read here: give inputs and expected outputs"
ROUNDED: Final = "rounded"
"""Fact of an outcome: the engine agrees with the definitions if each result is rounded to its data type."""


def samples_by_definitions(
    archive: Path,
    user_inputs: Sequence[tuple[Array, ...]] = (),
    *,
    standard: bool = False,
    drawing: Mapping[str, Any] | None = None,
) -> list[Sample]:
    """Return a sample for each set of inputs, or for drawn ones if none are given, with options as in `Evaluator`.

    With `standard`, NNEF 1.0's definitions apply where tract's differ.

    Raises MalformedArchiveError, with the statement, for an archive that reads what it does not define, and other
    errors of `Evaluator.samples`.
    """
    try:
        return Evaluator.shared().samples(archive, user_inputs, standard=standard, drawing=drawing)
    except MalformedArchiveError as wrong:
        error = MalformedArchiveError(f"{archive} is malformed: {wrong.message}", statement=wrong.statement)
        error.hint = _HINT
        raise error from wrong


def check_by_definitions(engine: Engine, request: CheckRequest, *, standard: bool = False) -> Outcome:
    """Return the outcome of the samples of `samples_by_definitions`.

    Where the engine differs from float64, it may be right in the data types of the archive: a product that float32
    rounds to an integer chooses another element. The reference is then a result that is rounded after each operation.
    Where rounded inputs change the outputs as much, as sums that cancel do, the pass is weak.
    """
    outcome = check_parity(engine, request)
    if outcome.status is not Status.MISMATCH:
        return outcome
    batches = [sample.inputs for sample in request.samples]
    samples = Evaluator.shared().samples(request.archive, batches, standard=standard, round_to_storage=True)
    rounded = check_parity(engine, replace(request, samples=samples))
    if rounded.passed:
        return replace(rounded, facts={**rounded.facts, ROUNDED: True})
    return with_conditioning(outcome, engine, request, standard=standard)
