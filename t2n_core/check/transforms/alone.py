"""Parity of an archive alone after transforms of the engine: the samples of a request judge the transformed model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from t2n_core.check.answered import Answered
from t2n_core.check.transforms.applied import apply_transforms
from t2n_core.check.transforms.dtypes import answered_dtypes, given_dtypes
from t2n_core.check.transforms.interface import Port, positions
from t2n_core.check.transforms.level import default_judgement
from t2n_core.check.transforms.outcomes import outcome_after
from t2n_core.engine.tract.engine import TractEngine
from t2n_core.engine.tract.transforms.transform import transforms_from
from t2n_core.errors import InputError
from t2n_core.parity.check import check_parity
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.request import CheckRequest
from t2n_core.scratch import scratch_folder


def check_transform_alone(engine: TractEngine, request: CheckRequest, texts: Sequence[Any]) -> Outcome:
    """Apply transforms to an archive in an engine, and compare its outputs with a request's expected outputs.

    The transforms' criteria apply: the request's for exact transforms, wider ones where the engine computes in other
    types. A transform that does not change the model makes a pass weak.

    Raises InputError for a transform that the release does not have, that no check can judge, or after which the model
    has other inputs or outputs than the archive.
    """
    transforms = transforms_from(texts)
    for transform in transforms:
        transform.require(engine.version)
    criteria = default_judgement(transforms, request.criteria)
    with scratch_folder() as scratch:
        applied = apply_transforms(
            engine, request.archive, transforms, request.samples, criteria, scratch, request.timeout
        )
        if isinstance(applied, Outcome):
            return applied
        before, now = applied.before, applied.now
        if not (_same(before.inputs, now.inputs) and _same(before.outputs, now.outputs)):
            names = ", ".join(map(str, transforms))
            raise InputError(f"after {names} the model has other inputs or outputs, for which nothing is expected")
        samples = [given_dtypes(sample, now.inputs) for sample in request.samples]
        batches = [sample.inputs for sample in samples]
        options: dict[str, Any] = {"timeout": request.timeout, "transforms": transforms, "scratch": scratch}
        answered = engine.run(request.archive, batches, **options)
    if answered.status == "ok":
        samples = answered_dtypes(samples, answered.outputs)
    outcome = check_parity(
        Answered(engine.version, answered), replace(request, samples=samples, criteria=criteria, interface=None)
    )
    return outcome_after(transforms, outcome, applied.facts)


def _same(before: Sequence[Port], now: Sequence[Port]) -> bool:
    """Return whether the ports are as many, in the same order, and of the same ranks."""
    if positions(before, now) != list(range(len(before))):
        return False
    return all(len(port.shape) == len(other.shape) for port, other in zip(before, now, strict=True))
