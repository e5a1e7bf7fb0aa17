"""Run an archive that generates, token by token, and compare each step with what PyTorch generates."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from t2n_core.engine.paths import EnginePath
from t2n_core.engine.pool import TractRunner
from t2n_core.errors import InputError
from t2n_core.files import archive_digest
from t2n_core.parity.comparison import OutputComparison, compare
from t2n_core.parity.generation.continuation import Continuation
from t2n_core.parity.generation.decoding import Decoder, as_type_of
from t2n_core.parity.generation.further import further_checks, held_check, path_check
from t2n_core.parity.generation.outcome import (
    TOKENS,
    FurtherCheck,
    FurtherStatus,
    GeneratedStep,
    GenerationOutcome,
    badness,
)
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.outcome import ErrorInfo, Outcome, Stage, Status
from t2n_core.parity.outcomes import WEAK_CHECK
from t2n_core.parity.state_pairs import StatePair
from t2n_core.parity.tolerance import DEFAULT_LEVEL, LEVELS, TractCheckTolerance

_HINT = "give prompts= whose continuations differ, more steps, or weights of real spread"


def check_generation(
    engine: TractRunner,
    archive: Path,
    state: Sequence[StatePair],
    continuations: Sequence[Continuation],
    *,
    tolerance: str | TractCheckTolerance = DEFAULT_LEVEL,
    timeout: float = 60.0,
    memory_limit: int | None = None,
    divisible: bool = True,
    takes_one: bool = True,
    notes: Sequence[str] = (),
) -> GenerationOutcome:
    """Run each prompt at the initial state, then its greedy steps, in one session of the engine.

    In each step the token must be PyTorch's, and the logits within the level; if PyTorch's two best logits are closer
    than the level can distinguish, the other one is a tie. The same prompts are then fed in chunks, token by token, as
    a batch, with a return to an earlier state, on each further path of the engine, and with state that the engine
    holds, as far as the archive and the engine support that. A pass is weak if all tokens are the same, or if the state
    does not change the logits. `divisible` is False for a model that is itself outside the level for a prompt in parts,
    `takes_one` for an archive that needs its state, since its range has no first step of one token. `notes` are kept.
    `timeout` is in seconds for each step. Failures of the engine are outcomes, never exceptions.

    Raises:
        InputError: `tolerance` is not a level, or there is no step to compare.
    """
    level = TractCheckTolerance.parse(tolerance)
    prompts = dict(enumerate(continuations))
    total = sum(continuation.steps for continuation in continuations)
    if not total:
        raise InputError("a check of a generation needs a prompt and a step")
    common: dict[str, Any] = {"engine": f"{engine.name} {engine.version}", "required": level}
    begun = time.perf_counter()
    steps: list[GeneratedStep] = []
    further: list[FurtherCheck] = []
    stage = Stage.LOAD
    paths = [path for path in engine.paths if path is not EnginePath.FIXED_SYMBOLS] or [EnginePath.DECLUTTER]
    try:
        common["archive_sha256"], common["archive_bytes"] = archive_digest(archive)
        with ExitStack() as stack:
            options: dict[str, Any] = {"timeout": timeout, "memory_limit": memory_limit, "state": _pairs(state)}
            initial = [pair.initial for pair in state]
            session = stack.enter_context(engine.session(archive, **options, initial=initial, path=paths[0]))
            common["facts"] = dict(session.facts)
            stage = Stage.RUN
            decoder = Decoder(session, state)
            for number, continuation in prompts.items():
                decoder.start()
                steps.extend(decoder.follow({number: continuation}, level))
            stateless = bool(state) and takes_one and _is_stateless(decoder, continuations[-1], level)
            further = further_checks(decoder, prompts, level, divisible=divisible)
            for path in paths[1:]:
                again = stack.enter_context(engine.session(archive, **options, initial=initial, path=path))
                further.append(path_check(path, Decoder(again, state), prompts, level))
            common["times"] = {**session.times, "run": time.perf_counter() - begun}
            if state and engine.holds_state:
                held_options = {**options, "held_by_engine": True}
                further.append(
                    held_check(
                        lambda: Decoder(stack.enter_context(engine.session(archive, **held_options)), ()),
                        prompts,
                        level,
                    )
                )
    except Exception as exc:
        outcome = Outcome.from_error(exc, stage, **common)
        if steps and outcome.error:
            hint = f"{len(steps)} of {total} tokens were generated before"
            outcome = replace(outcome, error=replace(outcome.error, hint=outcome.error.hint or hint))
        return _with_facts(GenerationOutcome(outcome, tuple(steps), total, tuple(further), tuple(notes)))
    generation = GenerationOutcome(
        Outcome(Status.PASS, Stage.COMPARE, **common), tuple(steps), total, tuple(further), tuple(notes)
    )
    return _with_facts(replace(generation, outcome=_judge(generation, stateless)))


def _pairs(state: Sequence[StatePair]) -> list[tuple[str, str]]:
    return [(pair.input, pair.output) for pair in state]


def _is_stateless(decoder: Decoder, continuation: Continuation, level: TractCheckTolerance) -> bool:
    """Return whether the last token has the same logits without the state of all tokens before it."""
    if continuation.steps < 2:
        return False
    decoder.start()
    alone = decoder.feed(continuation.tokens[None, -2:-1], continuation.fixed)[0]
    return compare(as_type_of(continuation.logits[-1], alone), alone, criteria=Judgement(level)).passed


def _judge(generation: GenerationOutcome, stateless: bool) -> Outcome:
    """Return the outcome of the check: a pass, a weak pass or a mismatch."""
    outputs = _worst(generation)
    levels = [output.level for output in outputs]
    level = None if None in levels else max((level for level in levels if level), default=LEVELS[0])
    common = replace(generation.outcome, outputs=outputs, level=level)
    different = generation.first_different
    failed = [check for check in generation.further if check.status is FurtherStatus.MISMATCH]
    if different is not None or failed:
        reasons = [different.describe()] if different is not None else []
        reasons += [f"{check.name}: {check.reason}" for check in failed]
        message = f"{generation.tokens} tokens are right; {'; '.join(reasons)}"
        return replace(
            common,
            status=Status.MISMATCH,
            error=ErrorInfo.of(Stage.COMPARE, "ParityError", message, hint=_cause(replace(generation, outcome=common))),
        )
    weak = _why_weak(generation, stateless)
    if weak:
        error = ErrorInfo.of(Stage.COMPARE, WEAK_CHECK, f"the tokens prove little: {weak}", hint=_HINT)
        return replace(common, status=Status.WEAK, error=error)
    return common


def _worst(generation: GenerationOutcome) -> tuple[OutputComparison, ...]:
    """Return the worst comparison of all steps, and of each variant."""
    steps = [
        replace(step.logits, name=f"logits of step {step.step}, prompt {step.prompt}") for step in generation.steps
    ]
    worst = [max(steps, key=badness)] if steps else []
    return (*worst, *(replace(check.worst, name=check.name) for check in generation.further if check.worst is not None))


def _cause(generation: GenerationOutcome) -> str:
    """Return a hint from the first difference."""
    first = generation.first_different
    level = generation.outcome.level
    if level is not None and generation.right == generation.total:
        return f"all tokens are right, and it holds at level `{level.value}`"
    if first is None:
        return "the full prompt at once is right: the state of a variant differs"
    if first.step:
        return "the prompt is right and a later step is not: the state, or a position computed from its size, is wrong"
    return "the step of the prompt is already wrong: compare the archive itself with assert_parity"


def _why_weak(generation: GenerationOutcome, stateless: bool) -> str:
    tokens = {step.expected for step in generation.steps}
    if len(tokens) == 1:
        return f"all {len(generation.steps)} are the same one, {tokens.pop()}"
    return "the logits of the last token are the same without any state" if stateless else ""


def _with_facts(generation: GenerationOutcome) -> GenerationOutcome:
    """Return the outcome with what a record keeps among its facts."""
    more: Mapping[str, Any] = {
        TOKENS: generation.tokens,
        "ties": generation.ties,
        "ways": {check.name: check.text for check in generation.further},
    }
    facts = {name: value for name, value in {**more, "notes": list(generation.notes)}.items() if value}
    return replace(generation, outcome=replace(generation.outcome, facts={**generation.outcome.facts, **facts}))
