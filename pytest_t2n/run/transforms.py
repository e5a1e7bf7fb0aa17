"""The checks of an archive after transforms of its engine, once it has passed without them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_t2n.config.transforms import refusal
from pytest_t2n.records.cell import Cell

if TYPE_CHECKING:
    from t2n_core.export.result import ExportResult
    from t2n_core.parity.judging.judgement import Judgement
    from t2n_core.parity.outcome import Outcome

CHECKED = "checked_transforms"
"""Fact of an outcome: how the check after each transform ended."""


def with_transforms(
    outcome: Outcome,
    cell: Cell,
    result: ExportResult,
    criteria: Judgement,
    timeout: float,
    of_test: Sequence[str],
    of_session: Sequence[str],
) -> Outcome:
    """Return the pass with the results of each transform, or the first outcome that is no pass.

    Transforms that the release lacks do not run, which a fact says. If a transform requested by the session changes
    nothing or does not apply to this model, that is a fact too; if the test requests it, the pass is weak or the test
    fails.
    """
    names = list(dict.fromkeys((*of_test, *of_session)))
    if cell.engine.kind != "tract" or not names:
        return outcome
    ended: dict[str, str] = {}
    for name in names:
        if (lacking := refusal(name, cell.engine.version)) is not None:
            ended[name] = f"not checked: {lacking.message}"
            continue
        transform_outcome = _check(name, result, criteria, timeout)
        ended[name] = _result_text(transform_outcome)
        meaningless = transform_outcome.error is not None and transform_outcome.error.error_class == "InputError"
        if meaningless and name not in of_test:
            ended[name] = f"not checked: {ended[name]}"
        elif not transform_outcome.passed:
            return replace(transform_outcome, facts={**outcome.facts, **transform_outcome.facts, CHECKED: ended})
        elif transform_outcome.status.value == "weak" and name in of_test and outcome.status.value == "pass":
            outcome = replace(outcome, status=transform_outcome.status, error=transform_outcome.error)
    return replace(outcome, facts={**outcome.facts, CHECKED: ended})


def _check(name: str, result: ExportResult, criteria: Judgement, timeout: float) -> Outcome:
    from t2n_core.parity.outcome import Outcome

    try:
        return result.check_transform(name, own=criteria, timeout=timeout)
    except Exception as exc:
        return Outcome.from_error(exc, "compare")


def _result_text(outcome: Outcome) -> str:
    """Return how a check ended: `pass at close`, `weak: …`."""
    numbers: list[Any] = [f"{metric.name} {metric.value:.3g}" for metric in outcome.metrics if metric.required]
    reached = f" at {outcome.level.value}" if outcome.level is not None and not numbers else ""
    why = "" if outcome.error is None else f": {outcome.error.message.partition(chr(10))[0]}"
    return f"{outcome.status.value}{reached}{''.join(f', {number}' for number in numbers)}{why}"
