"""The search for repairs after which engines read an ONNX model, each proven to keep the model's outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from t2n_core.errors import T2NError
from t2n_core.onnx_file.references import REFERENCES
from t2n_core.onnx_file.refusals import REFUSAL, Kind
from t2n_core.onnx_file.repairs import REPAIRS
from t2n_core.onnx_file.samples import reference_samples, run_job
from t2n_core.parity.comparison import compare_outputs
from t2n_core.parity.outcome import Outcome
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.stage import Stage, Status

_ROUNDS: Final = 3
"""Rounds of all repairs: one may help only after a later one, and missing operators show one by one."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """The repaired file, the repairs in it, and the outcome of each engine."""

    path: Path
    repairs: tuple[str, ...]
    outcomes: list[Outcome]
    unused: dict[str, str]
    """The reason why a repair was not used, by its name."""


def search_repairs(
    request: CheckRequest, check: Callable[[CheckRequest], list[Outcome]], before: Sequence[Outcome], folder: Path
) -> Repaired:
    """Apply the repairs that get an engine further, until all pass or none is left.

    `check` returns the outcomes of all engines; `before` has the original file's. A repair stays if the outputs by the
    request's reference are the same for all samples, and an engine passes or fails elsewhere.
    """
    state = Repaired(request.archive, (), list(before), {})
    tried: dict[str, Path] = {}
    for number, name in enumerate(name for _ in range(_ROUNDS) for name in REPAIRS):
        if all(outcome.passed for outcome in state.outcomes):
            break
        if tried.get(name) == state.path:
            continue
        tried[name] = state.path
        target = folder / f"{number}.onnx"
        try:
            reason = _apply(name, state, target) or _difference(request, target)
        except T2NError as wrong:
            reason = wrong.message
        outcomes = [] if reason else check(replace(request, archive=target))
        if not reason and not _is_further(outcomes, state.outcomes):
            reason = "no engine comes further"
        if reason:
            state.unused[name] = reason
        else:
            state = Repaired(target, (*state.repairs, name), outcomes, state.unused)
    unused = {name: reason for name, reason in state.unused.items() if name not in state.repairs}
    return replace(state, repairs=tuple(dict.fromkeys(state.repairs)), unused=unused)


def _apply(name: str, state: Repaired, target: Path) -> str:
    """Write the model after one more repair; return why there is none, '' if there is."""
    missing = [
        outcome.error.op
        for outcome in state.outcomes
        if outcome.error and outcome.facts.get(REFUSAL) == Kind.OPERATOR.value
    ]
    changed: list[bool] = []
    job = {"repair": name, "target": str(target), "missing": sorted(set(missing))}
    run_job(state.path, job, [], lambda frame: changed.append(frame.header["changed"]))
    return "" if changed[0] else "it changes nothing"


def _difference(request: CheckRequest, target: Path) -> str:
    """Return how the outputs of the repaired model differ at a sample; '' if they agree."""
    input_sets = [sample.inputs for sample in request.samples]
    references = [request.reference] if request.reference in REFERENCES else REFERENCES
    computed = reference_samples(target, input_sets, references=references)
    for sample, other in zip(request.samples, computed.samples, strict=True):
        compared = compare_outputs(sample.expected, other.expected, names=request.output_names)
        if changed := [output.name for output in compared if not output.passed]:
            return f"it changes {', '.join(changed)}"
    return ""


def _is_further(outcomes: Sequence[Outcome], before: Sequence[Outcome]) -> bool:
    """Return whether all engines get at least as far as before, and a failed one passes or fails elsewhere."""
    pairs = list(zip(before, outcomes, strict=True))
    if any(_progress(new) < _progress(old) for old, new in pairs):
        return False
    return any(not old.passed and (new.passed or _reason(new) != _reason(old)) for old, new in pairs)


def _progress(outcome: Outcome) -> int:
    """Return 2 for an engine that passed, 1 for one that only ran the model, and 0 otherwise."""
    return 2 if outcome.passed else int(outcome.stage in (Stage.RUN, Stage.COMPARE))


def _reason(outcome: Outcome) -> tuple[str, str]:
    """Return where an engine failed, and how; a crash's text differs each time."""
    is_named = outcome.error is not None and outcome.status is not Status.CRASH
    return outcome.stage.value, outcome.error.message if is_named and outcome.error else outcome.status.value
