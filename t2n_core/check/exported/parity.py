"""The check of an exported archive in the engine of its target, with the known causes of a mismatch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from t2n_core.check.exported.archive import ExportedArchive
from t2n_core.check.mismatch.author import with_author
from t2n_core.check.mismatch.causes import with_causes
from t2n_core.check.mismatch.float64_recheck import recheck_in_float64
from t2n_core.check.mismatch.rounding import note_rounding
from t2n_core.check.mismatch.unspecified import judge_unspecified
from t2n_core.engine.paths import on_path
from t2n_core.errors import InputError
from t2n_core.inference_target import KhronosNNEF
from t2n_core.parity.check import check_parity
from t2n_core.parity.judging.judgement import STORED, Judgement
from t2n_core.parity.outcome import ROUNDING, Outcome, Stage, Status
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import DRAWN, LONG_SIZES, STORED_WEIGHTS
from t2n_core.parity.tolerance import TractCheckTolerance

Tolerance: TypeAlias = "str | TractCheckTolerance | Mapping[str, str | TractCheckTolerance] | Judgement | None"


def criteria_for(result: ExportedArchive, tolerance: Tolerance = None, **judged_by: Any) -> Judgement:
    """Return the criteria of an archive's check; its target and its options set the defaults.

    Raises InputError for an unknown level or output, or for arguments that `Judgement.of` refuses.
    """
    __tracebackhide__ = True
    try:
        level = result.own_level if tolerance is None and not judged_by else tolerance
        criteria = Judgement.of(level, **judged_by, default=result.target.check_io_tolerance)
    except InputError as wrong:
        raise wrong.with_traceback(None) from None  # the error is in the user's call
    if unknown := criteria.unmatched(result.output_names):
        raise InputError(f"there is no output {', '.join(unknown)} to judge", hint=f"it has {result.output_names}")
    return criteria


def check_exported(result: ExportedArchive, criteria: Judgement, *, timeout: float = 60.0) -> Outcome:
    """Run an archive in its target's engine on all samples. Failures are in the outcome, never raised.

    An archive for streams that passes runs as a stream, too. `timeout` is in seconds.
    """
    try:
        request, engine = result.check_request(criteria, timeout), result.target.engine()
        request = replace(request, samples=result.for_metrics(request.samples, criteria))
    except Exception as cause:
        return Outcome.from_error(cause, Stage.SETUP)
    outcome = check_parity(engine, request)
    if outcome.passed and result.target.pulse is not None:
        from t2n_core.check.exported.streaming import check_streaming  # few archives are for streams

        return check_streaming(result, result.target.pulse, criteria, timeout=timeout)
    if outcome.status is Status.MISMATCH:
        outcome = without_rounding(_add_causes(outcome, result, request), result, request)
        outcome = _with_metrics_as_stored(outcome, result, request)
    notes = {DRAWN: result.drawn, LONG_SIZES: list(result.long_sizes.values()), STORED_WEIGHTS: result.stored_text}
    facts = {**{name: fact for name, fact in notes.items() if fact}, **outcome.facts}
    return replace(outcome, facts=facts).with_times(result.times)


def _with_metrics_as_stored(mismatch: Outcome, result: ExportedArchive, request: CheckRequest) -> Outcome:
    """Return the mismatch of a metric with a hint on its value against the weights as the archive stores them.

    The check runs once more, only if the metric was measured against the model's own weights.
    """
    failed = {metric.name for metric in mismatch.metrics if not metric.passed}
    criteria = request.criteria
    if not failed or mismatch.error is None or not result.stored or criteria.in_float64 or criteria.reference == STORED:
        return mismatch
    again = check_parity(result.target.engine(), replace(request, samples=result.samples))
    metrics = [metric for metric in again.metrics if metric.name in failed]
    if not metrics:
        return mismatch
    within = "within its bound" if all(metric.passed for metric in metrics) else "beyond its bound too"
    values = ", ".join(f"{metric.name} {metric.value:.3g}" for metric in metrics)
    hint = f"against the weights as stored ({result.stored_text}), as the errors in the table, it is {within}: {values}"
    return replace(mismatch, error=mismatch.error.with_hint(hint))


def _add_causes(mismatch: Outcome, result: ExportedArchive, request: CheckRequest) -> Outcome:
    """Return a mismatch with its known causes, after a comparison in float64."""
    reference, engine = result.reference, on_path(result.target.engine(), mismatch.path, mismatch.failed_sizes)
    mismatch = judge_unspecified(mismatch, result.target.engine(), request, reference, result.stored)
    if mismatch.passed:
        return mismatch
    if isinstance(result.target, KhronosNNEF):
        mismatch = recheck_in_float64(mismatch, result.archive, result.samples, reference.source, reference.inputs)
    elif not request.criteria.in_float64:
        mismatch = note_rounding(mismatch, engine, request, reference)
    mismatch = with_author(mismatch, engine, request)
    return with_causes(mismatch, reference, result.samples)


def without_rounding(mismatch: Outcome, result: ExportedArchive, request: CheckRequest) -> Outcome:
    """Return a mismatch, or the outcome of the other samples if it is rounding at long sizes alone.

    There the engine is about as near to the model in float64 as PyTorch is; the record says how near both are.
    """
    failed = {name: sample for name, sample in result.long_samples.items() if sample.sizes in mismatch.failed_sizes}
    if ROUNDING not in mismatch.facts or not all(
        any(sizes == sample.sizes for sample in failed.values()) for sizes in mismatch.failed_sizes
    ):
        return mismatch
    other_samples = [sample for sample in request.samples if sample.sizes not in mismatch.failed_sizes]
    outcome = check_parity(result.target.engine(), replace(request, samples=other_samples))
    words = mismatch.facts[ROUNDING]
    lines = [f"{line}: {words}" if name in failed else line for name, line in result.long_sizes.items()]
    return replace(outcome, facts={**outcome.facts, LONG_SIZES: lines})
