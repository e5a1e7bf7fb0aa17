"""Variants with the same tokens: the prompt in chunks, prompts as one batch, return to a state, state in the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby

from t2n_core.errors import EngineError, EngineRunError
from t2n_core.level import TractCheckTolerance
from t2n_core.parity.generation.continuation import Continuation
from t2n_core.parity.generation.decoding import Decoder
from t2n_core.parity.generation.outcome import FurtherCheck, FurtherStatus, GeneratedStep, badness

STEPS = 4
"""Tokens that are generated after a prompt in a variant: enough to test the state that it left."""
HELD = "state held by the engine"
"""The name of the check with state that no input or output shows."""
Prompts = Mapping[int, Continuation]
Way = Callable[[Decoder, Prompts, TractCheckTolerance], list[GeneratedStep] | str]


def further_checks(
    decoder: Decoder, prompts: Prompts, level: TractCheckTolerance, *, divisible: bool = True
) -> list[FurtherCheck]:
    """Return the outcome of each variant that one session supports. Raises EngineError if the engine dies.

    `divisible` is False for a model that is itself outside the level for a prompt in parts.
    """
    override = _whole_only if not divisible and not decoder.takes_one_token else None
    ways: dict[str, Way] = {
        "prompt in chunks": override or _in_chunks,
        "prompt token by token": override or _one_by_one,
        "prompts in a batch": _in_a_batch,
        "back to an earlier state": _back,
    }
    return [run_variant(name, partial(way, decoder, prompts, level)) for name, way in ways.items()]


def path_check(path: str, decoder: Decoder, prompts: Prompts, level: TractCheckTolerance) -> FurtherCheck:
    """Return the outcome of all prompts with their greedy steps on another path of the engine."""

    def run() -> list[GeneratedStep]:
        steps: list[GeneratedStep] = []
        for number, continuation in prompts.items():
            decoder.start()
            steps += decoder.follow({number: continuation}, level)
        return steps

    return run_variant(f"on the path {path}", run)


def run_variant(name: str, run: Callable[[], Sequence[GeneratedStep] | str]) -> FurtherCheck:
    """Run one variant and return its outcome, or why it does not apply to this archive."""
    try:
        steps = run()
    except EngineRunError as error:  # the engine refused, and the session goes on
        return FurtherCheck(name, FurtherStatus.MISMATCH, error.message)
    if isinstance(steps, str):
        return FurtherCheck(name, FurtherStatus.SKIPPED, steps)
    worst = max((step.logits for step in steps), key=badness, default=None)
    wrong = next((step for step in steps if not step.passed), None)
    if wrong is not None:
        return FurtherCheck(name, FurtherStatus.MISMATCH, wrong.describe(), wrong.logits)
    return FurtherCheck(name, FurtherStatus.PASS, worst=worst)


def _whole_only(decoder: Decoder, prompts: Prompts, level: TractCheckTolerance) -> str:
    return f"PyTorch itself is outside `{level.value}` for a prompt in parts"


def _in_chunks(decoder: Decoder, prompts: Prompts, level: TractCheckTolerance) -> list[GeneratedStep] | str:
    long = {number: continuation for number, continuation in prompts.items() if continuation.prompt.shape[1] > 2}
    if decoder.takes_one_token:
        return "the archive takes one token a step"
    if not long:
        return "no prompt has three tokens"
    steps: list[GeneratedStep] = []
    for number, continuation in long.items():
        decoder.start()
        size = continuation.prompt.shape[1]
        places = sorted({max(size // 3, 1), max(2 * size // 3, 2)})
        steps += decoder.follow({number: continuation}, level, chunks=places, steps=STEPS)
    return steps


def _one_by_one(decoder: Decoder, prompts: Prompts, level: TractCheckTolerance) -> list[GeneratedStep] | str:
    if decoder.takes_one_token:
        return "the archive takes one token a step, and all prompts were fed so"
    number, continuation = next(iter(prompts.items()))
    decoder.start()
    return list(
        decoder.follow({number: continuation}, level, chunks=range(1, continuation.prompt.shape[1]), steps=STEPS)
    )


def _in_a_batch(decoder: Decoder, prompts: Prompts, level: TractCheckTolerance) -> list[GeneratedStep] | str:
    if not decoder.has_free_batch:
        return f"the batch of the archive is fixed at {decoder.batch}"
    ordered = sorted(prompts.items(), key=lambda item: item[1].prompt.shape[1])
    groups = [dict(group) for _, group in groupby(ordered, lambda item: item[1].prompt.shape[1])]
    largest = max(groups, key=len)
    if len(largest) < 2:
        return "no two prompts have the same length"
    decoder.start(len(largest))
    return list(decoder.follow(largest, level))


def _back(decoder: Decoder, prompts: Prompts, level: TractCheckTolerance) -> list[GeneratedStep] | str:
    """Continue with other tokens than PyTorch's, return to the earlier state, and feed PyTorch's."""
    number, continuation = next(iter(prompts.items()))
    middle = continuation.steps // 2
    if not middle:
        return "after one step there is no earlier state"
    vocabulary = continuation.logits.shape[1]
    decoder.start()
    steps = list(decoder.follow({number: continuation}, level, steps=middle))
    state = decoder.session.state()
    wrong = (continuation.tokens[None, :3] + 1 + vocabulary // 2) % vocabulary
    decoder.feed(wrong, continuation.fixed)
    decoder.session.set_state(state)
    return [*steps, *decoder.follow({number: continuation}, level, begin=middle)]


def held_check(open_held: Callable[[], Decoder], prompts: Prompts, level: TractCheckTolerance) -> FurtherCheck:
    """Return the outcome with state that the engine holds. Raises EngineError if the engine dies in a step."""

    def run() -> list[GeneratedStep] | str:
        try:
            decoder = open_held()
        except EngineError as error:
            return error.message.splitlines()[0]
        steps: list[GeneratedStep] = []
        for number, continuation in prompts.items():
            decoder.start()
            steps += decoder.follow({number: continuation}, level)
        return steps

    return run_variant(HELD, run)
