"""Parity after transforms of the engine: a transformed model must be as right as the archive.

outcome = result.check_transform("f32_to_f16")
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from t2n_core.check.answered import Answered
from t2n_core.check.exported.archive import ExportedArchive
from t2n_core.check.exported.parity import check_exported, criteria_for
from t2n_core.check.transforms.applied import apply_transforms
from t2n_core.check.transforms.dtypes import answered_dtypes
from t2n_core.check.transforms.level import default_judgement
from t2n_core.check.transforms.outcomes import CHANGED, outcome_after
from t2n_core.check.transforms.plan import Plan, plan_runs
from t2n_core.engine.protocol import EngineReply
from t2n_core.engine.tract.engine import TractEngine
from t2n_core.engine.tract.transforms.transform import Transform, transforms_from
from t2n_core.errors import InputError
from t2n_core.parity.check import check_parity
from t2n_core.parity.further_runs.batches import Batches, Call, Fed, SelfComparison, run_with_further
from t2n_core.parity.further_runs.kept_states import plan_calls
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.outcome import Outcome, Stage, Status
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.sensitivity import sensitivities
from t2n_core.scratch import scratch_folder


def check_transform(
    result: ExportedArchive, texts: Sequence[Any], criteria: Judgement | None, own: Judgement, *, timeout: float = 60.0
) -> Outcome:
    """Apply transforms to the archive in its engine, run all samples, and compare with PyTorch.

    Without `criteria` the transforms' level applies: `own` for exact ones, see `level.py` for others. A transform
    that does not change the model makes a pass weak. Failures of the engine are outcomes, never exceptions.

    Raises InputError for a transform that the release does not have or no check can judge, and if PyTorch has no
    counterpart for the inputs or outputs of the transformed model.
    """
    transforms = transforms_from(texts)
    engine = _engine_for(result, transforms)
    criteria = default_judgement(transforms, own) if criteria is None else criteria
    try:
        samples = result.for_metrics(result.samples, criteria)
    except Exception as cause:
        return Outcome.from_error(cause, Stage.SETUP)
    with scratch_folder() as scratch:
        applied = apply_transforms(engine, result.archive, transforms, samples, criteria, scratch, timeout)
        if isinstance(applied, Outcome):
            return applied
        facts = applied.facts
        plan = plan_runs(result, transforms, samples, applied.before, applied.now)
        comparison = None if plan.one_state else plan_calls(engine.kept_states, result.archive, plan.samples)
        comparisons = [] if comparison is None else [comparison]
        shared: dict[str, Any] = {"timeout": timeout, "transforms": transforms, "scratch": scratch}

        def run(batches: Batches, _: Batches, __: Sequence[Fed], calls: Sequence[Call]) -> EngineReply:
            return engine.run(result.archive, batches, calls=calls, one_state=plan.one_state, **shared)

        batches = [sample.inputs for sample in plan.samples]
        answered, replies, _ = run_with_further(run, batches, comparisons, ())
        if facts[CHANGED] == [None] and not plan.one_state and _moves_bits(result, engine, plan, answered, timeout):
            facts[CHANGED] = [True]
        pairs = list(zip(comparisons, replies, strict=True))
        outcome = _compare(result, engine, plan, criteria, answered, pairs, timeout)
    if outcome.status is Status.MISMATCH:
        outcome = _with_archive(outcome, result, own, timeout)
    return outcome_after(transforms, outcome, facts).with_times(result.times)


def _engine_for(result: ExportedArchive, transforms: Sequence[Transform]) -> TractEngine:
    """Return the engine of a result that has these transforms. Raises InputError."""
    engine = result.target.engine()
    if not isinstance(engine, TractEngine):
        raise InputError(f"{engine.name} {engine.version} has no transforms", hint="releases of tract have")
    if getattr(result.target, "pulse", None) is not None:
        raise InputError("an archive for streams is checked in pulses", hint="check_streaming does that")
    if not transforms:
        raise InputError("check_transform needs the name of a transform")
    for transform in transforms:
        transform.require(engine.version)
    return engine


def _moves_bits(
    result: ExportedArchive, engine: TractEngine, plan: Plan, answered: EngineReply, timeout: float
) -> bool:
    """Return whether the model without transforms answers differently, which proves a change."""
    plain = engine.run(result.archive, [sample.inputs for sample in plan.samples], timeout=timeout)
    pairs = zip(answered.outputs, plain.outputs, strict=False)
    return plain.status == "ok" and any(
        not np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        for new, old in pairs
        for a, b in zip(new, old, strict=False)
    )


def _compare(
    result: ExportedArchive,
    engine: TractEngine,
    plan: Plan,
    criteria: Judgement,
    reply: EngineReply,
    comparisons: Sequence[tuple[SelfComparison, EngineReply]],
    timeout: float,
) -> Outcome:
    """Return the outcome of an engine that has run a plan and further calls in its States."""
    samples = answered_dtypes(plan.samples, reply.outputs) if reply.status == "ok" else plan.samples
    names = [result.output_names[index] for index in plan.outputs]
    sensitivity = _sensitivities_left(result, plan, criteria)
    request = CheckRequest(
        result.archive,
        samples,
        names,
        criteria,
        timeout,
        result.range,
        sensitivity=sensitivity,
        metric_reference=result.metric_reference(criteria),
    )
    outcome = check_parity(Answered(engine.version, reply), request)
    for comparison, further_reply in comparisons:
        if outcome.passed:
            outcome = comparison.judge(outcome, request, reply, further_reply)
    return outcome


def _sensitivities_left(result: ExportedArchive, plan: Plan, criteria: Judgement) -> list[Any]:
    """Return the sensitivities of the outputs that are left over all samples of the archive."""
    all_sensitivities = sensitivities(result.samples, result.output_names, criteria, result.constant_outputs)
    return [all_sensitivities[index] for index in plan.outputs]


def _with_archive(mismatch: Outcome, result: ExportedArchive, judgement: Judgement, timeout: float) -> Outcome:
    """Return a mismatch with a hint whether the archive also fails without the transforms."""
    plain = check_exported(result, criteria_for(result, judgement), timeout=timeout)
    verdict = "passes" if plain.passed else "fails as well"
    error = mismatch.error
    hint = f"without the transform the archive {verdict}"
    if error is None:
        return mismatch
    return replace(mismatch, error=error.with_hint(hint))
