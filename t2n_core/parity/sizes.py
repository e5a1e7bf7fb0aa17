"""Run an archive at many sizes and report the result at each: right, wrong, refused by the engine, or a crash."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from t2n_core.engine.protocol import Array, EngineReply, KeptStates
from t2n_core.errors import InputError
from t2n_core.files import archive_digest
from t2n_core.parity.further_runs.batches import run_with_further
from t2n_core.parity.further_runs.kept_states import plan_calls
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.outcome import ErrorInfo, Outcome, Stage, Status, error_name
from t2n_core.parity.outcomes import comparison_outcome, failure_outcome
from t2n_core.parity.request import CheckRequest
from t2n_core.parity.samples import Sample
from t2n_core.parity.table import sizes_text
from t2n_core.parity.tolerance import DEFAULT_LEVEL, TractCheckTolerance

Sizes = Mapping[str, int]
PROCESSES = 4
"""Most processes: an engine that crashed at one size is started again for the sizes after it."""
REFUSED, DIED, NOT_RUN, UNGUARDED = "refused_sizes", "crashed_sizes", "sizes_not_run", "unguarded_sizes"
"""Facts of the outcome: lists of sizes. `DIED` are sizes at which the engine's process ended; `UNGUARDED` are sizes
with wrong results, if all of them are beyond the range."""


class KeepsGoing(Protocol):
    """An engine whose job continues after a batch that it answers with an error."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def kept_states(self) -> KeptStates | None: ...

    def run(
        self, archive: Path, batches: Sequence[Sequence[Array]], *, timeout: float = ..., **options: Any
    ) -> EngineReply: ...


@dataclass(slots=True)
class Answers:
    """Results of the samples, collected over all processes of the engine."""

    ran: list[tuple[Sample, tuple[Array, ...]]] = field(default_factory=list)
    refused: list[tuple[Sample, str]] = field(default_factory=list)
    died: list[tuple[Sample, EngineReply]] = field(default_factory=list)
    left: Sequence[Sample] = ()
    """Samples that are still to run, after the last crash."""
    first: EngineReply | None = None

    @property
    def failure(self) -> EngineReply | None:
        """Return the reply of an engine that did not get to run the samples; None if it did."""
        first = self.first
        return None if first is None or first.status == "ok" or first.stage == "run" else first

    def take(self, reply: EngineReply, samples: Sequence[Sample]) -> None:
        self.first = self.first or reply
        for index, (sample, outputs) in enumerate(zip(samples, reply.outputs, strict=False)):
            if index in reply.refused:
                self.refused.append((sample, reply.refused[index]))
            else:
                self.ran.append((sample, outputs))
        self.left = samples[len(reply.outputs) :]
        if self.left:
            self.died.append((self.left[0], reply))
            self.left = self.left[1:]


def check_sizes(
    engine: KeepsGoing,
    archive: Path,
    samples: Sequence[Sample],
    *,
    accepts: Callable[[Sizes], bool],
    tolerance: str | TractCheckTolerance = DEFAULT_LEVEL,
    output_names: Sequence[str] = (),
    timeout: float = 60.0,
    carries: bool = False,
) -> Outcome:
    """Load `archive` once, run it at every sample's sizes, and judge each by itself; the traced sizes come first.

    It passes if the results are right wherever `accepts` is true, and elsewhere either right or an error of the engine.
    Wrong results, or a crash of the engine's process, are failures at any size. The facts list the sizes at which the
    engine refused or crashed. After a crash the rest runs in another process, up to PROCESSES. Where nothing fails,
    samples within the range run again in a State that has run before, and must return the same, unless the archive
    `carries` its state from call to call.

    Raises:
        InputError: `tolerance` is not a level, or there is no sample.
    """
    criteria = Judgement(TractCheckTolerance.parse(tolerance))
    if not samples:
        raise InputError("a check of sizes needs at least one sample")
    common: dict[str, Any] = {
        "engine": f"{engine.name} {engine.version}",
        "required": criteria.required,
        "sizes": tuple(sample.sizes for sample in samples),
    }
    try:
        common["archive_sha256"], common["archive_bytes"] = archive_digest(archive)
        answers = answers_at_sizes(engine, archive, samples, timeout)
    except Exception as exc:
        return Outcome.from_error(exc, Stage.LOAD, **common)
    reply = answers.first
    assert reply is not None
    common.update(times=dict(reply.times), facts=dict(reply.facts))
    if answers.failure is not None:
        return failure_outcome(reply, samples, common)
    common["facts"].update(_sizes_by_fate(answers))
    request = CheckRequest(archive, samples, output_names, criteria, timeout)
    outcome = _judge(answers, accepts, request, common)
    within = [sample for sample, _ in answers.ran if accepts(sample.sizes)]
    if carries or not within or not outcome.passed:
        return outcome
    return _repeat(engine, replace(request, samples=within), outcome, common)


def answers_at_sizes(engine: KeepsGoing, archive: Path, samples: Sequence[Sample], timeout: float) -> Answers:
    """Return what an engine answers to each sample; after a crash the rest runs in another process, up to PROCESSES."""
    answers = Answers(left=samples)
    for _ in range(PROCESSES):
        pending = answers.left
        reply = engine.run(archive, [sample.inputs for sample in pending], timeout=timeout, keep_going=True)
        if reply.stage != "run" and answers.first is not None:
            break  # it loaded before and does not now: the first crashes suffice
        answers.take(reply, pending)
        if not answers.left or reply.status == "timeout" or reply.stage != "run":
            break
    return answers


def _judge(
    answers: Answers, accepts: Callable[[Sizes], bool], request: CheckRequest, common: Mapping[str, Any]
) -> Outcome:
    """Return the outcome: wrong results come first, then crashes, then refusals of sizes within the range."""
    outcome = None
    if answers.ran:
        widened = answers.first is not None and answers.first.widened
        reply = EngineReply("ok", "run", outputs=tuple(outputs for _, outputs in answers.ran), widened=widened)
        outcome = comparison_outcome(reply, replace(request, samples=[sample for sample, _ in answers.ran]), common)
        if not outcome.passed:
            return _with_hint_if_unguarded(outcome, accepts)
    if answers.died:
        sizes = tuple(sample.sizes for sample, _ in answers.died)
        return replace(failure_outcome(answers.died[0][1], [answers.died[0][0]], common), failed_sizes=sizes)
    missing = [(sample.sizes, text) for sample, text in answers.refused if accepts(sample.sizes)]
    if missing or outcome is None:
        sizes = tuple(sizes for sizes, _ in missing)
        text = missing[0][1] if missing else answers.refused[0][1]
        hint = f"it ran at {sizes_text([s.sizes for s, _ in answers.ran])}" if answers.ran else "it ran at no size"
        info = ErrorInfo.of(Stage.RUN, error_name(Status.ERROR, Stage.RUN), text, hint=hint)
        return Outcome(Status.ERROR, Stage.RUN, error=info, failed_sizes=sizes, **common)
    return outcome


def _repeat(engine: KeepsGoing, request: CheckRequest, outcome: Outcome, common: Mapping[str, Any]) -> Outcome:
    """Return a pass, or the failure of samples that run again in a State that has run before."""
    states, samples = engine.kept_states, request.samples
    planned = None if states is None else plan_calls(states, request.archive, samples)
    if planned is None:
        return outcome
    used = sorted({index for call in planned.calls for index in call})
    request = replace(request, samples=[samples[index] for index in used])
    planned = replace(planned, calls=tuple((used.index(before), used.index(after)) for before, after in planned.calls))

    def run(batches: Any, _outside: Any, _fed: Any, calls: Any) -> EngineReply:
        return engine.run(request.archive, batches, timeout=request.timeout, **({"calls": calls} if calls else {}))

    reply, (own_reply,), _ = run_with_further(run, [sample.inputs for sample in request.samples], [planned], ())
    if reply.status != "ok":
        return failure_outcome(reply, request.samples, common)
    return planned.judge(outcome, request, reply, own_reply)


def _with_hint_if_unguarded(wrong: Outcome, accepts: Callable[[Sizes], bool]) -> Outcome:
    """Return the outcome of wrong results, with a hint if all are beyond the range, where no engine should run."""
    beyond = [dict(sizes) for sizes in wrong.failed_sizes if not accepts(sizes)]
    if len(beyond) < len(wrong.failed_sizes) or wrong.error is None:
        return wrong
    hint = "the archive is right within its range, but also runs beyond it"
    return replace(wrong, facts={**wrong.facts, UNGUARDED: beyond}, error=replace(wrong.error, hint=hint))


def _sizes_by_fate(answers: Answers) -> dict[str, list[dict[str, int]]]:
    """Return the sizes at which the engine refused, crashed or did not run, as facts; empty if every size ran."""
    lists = {
        REFUSED: [sample.sizes for sample, _ in answers.refused],
        DIED: [sample.sizes for sample, _ in answers.died],
        NOT_RUN: [sample.sizes for sample in answers.left],
    }
    return {name: sizes for name, sizes in lists.items() if sizes}
