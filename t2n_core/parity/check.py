"""Run an archive in an engine at every sample and compare: the last four stages of a cell."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from t2n_core.engine.paths import is_required
from t2n_core.engine.protocol import Engine, EngineReply
from t2n_core.errors import InputError, InterfaceError
from t2n_core.files import archive_digest
from t2n_core.parity.further_runs.batches import Batches, Call, Fed, SelfComparison, run_with_further, split_reply
from t2n_core.parity.further_runs.calls import calls_in_a_row
from t2n_core.parity.further_runs.kept_states import plan_calls
from t2n_core.parity.further_runs.paths import PathPlan, plan_paths
from t2n_core.parity.further_runs.pieces import cut_sample
from t2n_core.parity.further_runs.rows import replace_rows
from t2n_core.parity.judging.interface import check_facts, check_order, check_text
from t2n_core.parity.outcome import ErrorInfo, Outcome, Stage, Status
from t2n_core.parity.outcomes import comparison_outcome, failure_outcome, unique_sizes
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample
from t2n_core.parity.table import sizes_text

FAILED_PATHS = "failed_paths"
"""Fact of a pass: the failures on paths that the release does not support in general, by path."""
DIED_OUTSIDE = "died_outside"
"""Fact of the outcome: the size out of the range at which the engine crashed instead of refusing."""


def check_parity(engine: Engine, request: CheckRequest) -> Outcome:
    """Load the archive once, run all samples, compare each; every sample must pass.

    The text of the archive must have the declared interface, and where all samples pass, the model that the engine
    loads, too. The outcome carries the worst comparison per output and the sizes at which something failed. At the
    sizes outside the range the engine has to answer with an error. A pass is weak if an output that is not constant
    does not change from sample to sample. Some samples run again in a used State, and must return the same as in a
    fresh one, unless the archive carries its state from call to call. Rows of a batch must not depend on each other,
    and the pieces of a sequence must agree with the full sequence if they pass on their state, unless the model itself
    differs or is not available. Calls in a row must return what the model does. All this is on the engine's main
    path; on each further path the samples run again, and those outside the range. Failures of the engine are
    outcomes, never exceptions.

    Raises:
        InputError: the criteria name an unknown output, or there is no sample, or no output, to check.
    """
    names, criteria = request.output_names, request.criteria
    if unknown := criteria.unmatched(names):
        raise InputError(f"there is no output {', '.join(unknown)} to judge; there are {', '.join(names)}")
    if not request.samples:
        raise InputError("a parity check needs at least one sample")
    if not any(sample.expected for sample in request.samples):
        raise InputError("a parity check needs an output to compare")
    plan = plan_paths(engine, request)
    archive, samples, outside = request.archive, plan.request.samples, plan.request.outside
    common: dict[str, Any] = {
        "engine": f"{engine.name} {engine.version}",
        "required": criteria.required,
        "sizes": tuple(unique_sizes(sample.sizes for sample in samples)),
        "range": str(request.range),
    }
    more: dict[str, Any] = {"keep_going": True} if outside else {}
    try:
        common["archive_sha256"], common["archive_bytes"] = archive_digest(archive)
        if request.interface is not None:
            check_text(request.interface, archive)
        comparisons = _plan_comparisons(plan.engine, plan.request)

        def run(batches: Batches, beyond: Batches, fed: Sequence[Fed], calls: Sequence[Call]) -> EngineReply:
            paths = plan.runs(range(len(batches), len(batches) + len(beyond)))
            options = {name: some for name, some in (("fed", fed), ("calls", calls), ("further", paths)) if some}
            return plan.engine.run(archive, [*batches, *beyond], timeout=request.timeout, **more, **options)

        reply, replies, beyond = run_with_further(
            run, [sample.inputs for sample in samples], comparisons, [sample.inputs for sample in outside]
        )
        if request.interface is not None:
            check_order(request.interface, reply.facts, engine.name)
    except Exception as exc:
        return Outcome.from_error(exc, Stage.LOAD, **common)
    outcome = _judge(reply, beyond, plan.request, common)
    for comparison, own_reply in zip(comparisons, replies, strict=True):
        if outcome.passed:
            outcome = comparison.judge(outcome, plan.request, reply, own_reply)
    outcome = replace(outcome, paths=(plan.main,) if plan.main else ())
    if outcome.passed and request.interface is not None:
        try:
            check_facts(request.interface, reply.facts, engine.name)
        except InterfaceError as exc:
            outcome = Outcome.from_error(exc, Stage.LOAD, paths=outcome.paths, **common)
    if not outcome.passed:
        return replace(outcome, path=plan.main)
    outcome = _check_outside_range(outcome, beyond, outside)
    return _judge_paths(outcome, reply, plan, common) if outcome.passed else replace(outcome, path=plan.main)


def _judge(reply: EngineReply, beyond: EngineReply, request: CheckRequest, common: Mapping[str, Any]) -> Outcome:
    """Return the outcome of the samples on one path; `beyond` is the reply to the sizes outside the range."""
    samples, outside = request.samples, request.outside
    common = {**common, "times": dict(reply.times), "facts": dict(reply.facts)}
    if reply.status != "ok":
        return failure_outcome(reply, samples, common, request.timeout)
    if len(reply.outputs) != len(samples):
        message = f"the engine answered {len(reply.outputs)} of {len(samples)} batches and called that a success"
        return Outcome(Status.ERROR, Stage.RUN, error=ErrorInfo.of(Stage.RUN, "EngineRunError", message), **common)
    common["refused_sizes"] = tuple(outside[index].sizes for index in sorted(beyond.refused))
    return comparison_outcome(reply, request, common)


def _judge_paths(outcome: Outcome, reply: EngineReply, plan: PathPlan, common: Mapping[str, Any]) -> Outcome:
    """Return the first failure on a further path, or the pass of the main path with the loosest level of all."""
    for number, path in enumerate(plan.further):
        outcome = replace(outcome, paths=(*outcome.paths, path))
        if number >= len(reply.further):
            message = f"the engine did not take the path `{path}`"
            return replace(outcome.as_error(Stage.LOAD, "EngineRunError", message), path=path)
        request = plan.on(path)
        inside, beyond = split_reply(reply.further[number], len(request.samples))
        main = [reply.outputs[index] for index in plan.samples(path)]
        if inside.status == "ok" and all(map(operator.is_, inside.outputs, main)):
            on_path = outcome
        else:
            on_path = replace(_judge(inside, beyond, request, common), paths=outcome.paths)
        if on_path.passed:
            on_path = _check_outside_range(on_path, beyond, request.outside)
        if not on_path.passed and not is_required(path, plan.version):
            outcome = replace(outcome, facts={**outcome.facts, FAILED_PATHS: {path: on_path.summary}})
            continue
        if not on_path.passed:
            return replace(on_path, path=path)
        if _rank(on_path) > _rank(outcome):
            outcome = replace(outcome, level=on_path.level, outputs=on_path.outputs, metrics=on_path.metrics)
    return outcome


def _rank(outcome: Outcome) -> int:
    return -1 if outcome.level is None else outcome.level.rank


def _plan_comparisons(engine: Engine, request: CheckRequest) -> list[SelfComparison]:
    """Return the comparisons of the engine with itself, in the order in which they are judged."""
    if request.carries or engine.kept_states is None:
        return []
    samples, size_range = request.samples, request.range
    planned = (
        plan_calls(engine.kept_states, request.archive, samples),
        replace_rows(samples),
        None if isinstance(size_range, str) else cut_sample(samples, request.state, size_range.holds),
        calls_in_a_row(request),
    )
    return [comparison for comparison in planned if comparison is not None]


def _check_outside_range(outcome: Outcome, beyond: EngineReply, outside: Sequence[Sample]) -> Outcome:
    """Return the outcome, or a failure if the engine runs beyond the range; a crash there is a fact of the outcome."""
    ran = [outside[index].sizes for index in range(len(beyond.outputs)) if outside and index not in beyond.refused]
    if ran:
        message = (
            f"the engine runs at {sizes_text(ran)}, outside the range for which the archive is valid, {outcome.range}"
        )
        hint = "this is a bug of the exporter, please report it"
        return replace(outcome.as_error(Stage.RUN, "EngineRunError", message, hint), failed_sizes=tuple(ran))
    if len(beyond.outputs) < len(outside):
        at = dict(outside[len(beyond.outputs)].sizes)
        return replace(outcome, facts={**outcome.facts, DIED_OUTSIDE: {"sizes": at, "message": beyond.message}})
    return outcome
