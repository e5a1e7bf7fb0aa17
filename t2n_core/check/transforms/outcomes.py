"""Outcomes of transformed models: the transforms in the message, and a pass that proves nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from t2n_core.engine.tract.transforms.transform import Transform
from t2n_core.parity.outcome import ErrorInfo, Outcome, Stage, Status
from t2n_core.parity.outcomes import WEAK_CHECK

TRANSFORMS: Final = "transforms"
"""Fact of the outcome: the transforms that were applied, in order."""
CHANGED: Final = "transform_changed"
"""Fact of the outcome: whether each transform changed the model; None if the engine cannot report it."""
_UNCHANGED_HINT = "use a model that contains the transform's pattern, or leave the transform out"


def outcome_after(transforms: Sequence[Transform], outcome: Outcome, facts: Mapping[str, Any]) -> Outcome:
    """Return the outcome of a transformed model with facts of the transforms, which a failure names."""
    outcome = replace(outcome, facts={**outcome.facts, **facts})
    return _weak_if_unchanged(outcome, transforms) if outcome.passed else with_transform_names(outcome, transforms)


def with_transform_names(outcome: Outcome, transforms: Sequence[Transform]) -> Outcome:
    """Return a failure with the transforms in its message."""
    error = outcome.error or ErrorInfo.of(outcome.stage, "Failure", outcome.status.value)
    names = ", ".join(f"`{transform}`" for transform in transforms)
    return replace(outcome, error=replace(error, message=f"after the transform {names}: {error.message}"))


def _weak_if_unchanged(outcome: Outcome, transforms: Sequence[Transform]) -> Outcome:
    """Return a pass as weak if a transform did not change the model, or is not proven to have changed it."""
    pairs = zip(transforms, outcome.facts[CHANGED], strict=True)
    reasons = [_reason_of_no_proof(transform, changed) for transform, changed in pairs if not changed]
    if not reasons:
        return outcome
    earlier = [outcome.error.message] if outcome.error is not None else []
    error = ErrorInfo.of(Stage.COMPARE, WEAK_CHECK, "; ".join([*reasons, *earlier]), hint=_UNCHANGED_HINT)
    return replace(outcome, status=Status.WEAK, error=error)


def _reason_of_no_proof(transform: Transform, changed: bool | None) -> str:
    if changed is None:
        return f"the engine cannot write this model, to tell whether `{transform}` changed it"
    if transform.entry.begins:
        first = ", ".join(f"`{name}`" for name in transform.entry.begins)
        return f"the transform `{transform}` did no more than {first}, with which it begins"
    return f"the transform `{transform}` left the model as it was"
