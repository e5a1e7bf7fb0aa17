"""The judgement of a generation: wrong tokens, ties, wrong states, and passes that prove little."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t2n_core.errors import EngineCrash, EngineRunError, InputError, ParityError
from t2n_core.level import TractCheckTolerance
from t2n_core.parity.generation.check import check_generation
from t2n_core.parity.generation.continuation import Continuation
from t2n_core.parity.generation.outcome import FurtherStatus, GenerationOutcome, Verdict
from t2n_core.parity.outcome import Status
from tests.unit.parity.generation.toy import STATE, ToyEngine, continuation, logits_of

PROMPTS = ([1, 5, 2, 7], [3, 3, 9, 4], [8, 6])


@pytest.fixture
def checked(tmp_path: Path) -> Callable[..., GenerationOutcome]:
    def check(
        engine: ToyEngine, continuations: Sequence[Continuation] | None = None, **options: Any
    ) -> GenerationOutcome:
        references = [continuation(prompt) for prompt in PROMPTS] if continuations is None else continuations
        return check_generation(engine, tmp_path, STATE, references, **options)  # type: ignore[arg-type]

    return check


def further(found: GenerationOutcome) -> dict[str, FurtherStatus]:
    return {check.name: check.status for check in found.further}


def test_the_same_model_passes_in_every_way(checked):
    generation = checked(ToyEngine())
    assert (generation.outcome.status, generation.tokens, generation.level) == (
        Status.PASS,
        "18/18",
        TractCheckTolerance.EXACT,
    )
    assert set(further(generation).values()) == {FurtherStatus.PASS}
    assert len(generation.further) == 5
    assert [step.step for step in generation.steps] == [*range(6)] * 3
    assert generation.outcome.facts["tokens"] == "18/18"
    assert generation.first_different is None
    assert generation.raise_for_failure() is generation
    assert "prompts in a batch: pass" in generation.describe()


def test_a_wrong_token_ends_its_prompt(checked):
    """The largest and the second logit change places from the third step of each prompt on."""

    def wrong(past):
        logits = logits_of(past).copy()
        for row, size in zip(logits, [past.shape[1]] * len(logits), strict=True):
            if size == 6:
                row[row.argmax()] -= 9
        return logits

    generation = checked(ToyEngine(wrong))
    assert generation.outcome.status is Status.MISMATCH
    assert (generation.right, generation.total) == (2 + 2 + 4, 18)
    first = generation.first_different
    assert (first.prompt, first.step, first.verdict) == (0, 2, Verdict.WRONG)
    assert first.expected == continuation(PROMPTS[0]).tokens[2] != first.got
    assert f"step 2 of prompt 0: token {first.got}, PyTorch's is {first.expected}" in generation.outcome.error.message
    with pytest.raises(ParityError, match="8/18 tokens are right"):
        generation.raise_for_failure()


def test_right_tokens_with_other_logits_are_no_pass(checked):
    generation = checked(ToyEngine(lambda past: logits_of(past) + np.float32(0.01)), tolerance="approximate")
    assert (generation.outcome.status, generation.tokens) == (Status.MISMATCH, "18/18")
    assert "logits differ beyond `approximate`" in generation.outcome.error.message
    assert "it holds at level `very`" in generation.outcome.error.hint
    assert checked(ToyEngine(lambda past: logits_of(past) + np.float32(0.01)), tolerance="very").passed


def test_a_tie_is_no_wrong_token_and_the_next_step_takes_pytorchs(checked):
    """Two logits differ by a part in a million of what the engine rounds away, the other way round."""

    def close(past, gap):
        logits = logits_of(past).copy()
        order = logits.argsort(-1)
        for row, places in zip(logits, order, strict=True):
            row[places[-2]] = row[places[-1]] - gap
        return logits.astype("f4")

    references = [continuation(prompt, logits=lambda past: close(past, 5e-5)) for prompt in PROMPTS]
    generation = checked(ToyEngine(lambda past: close(past, -5e-5)), references, tolerance="approximate")
    assert (generation.outcome.status, generation.tokens, generation.ties) == (Status.PASS, "18/18", 18)
    assert generation.steps[0].got != generation.steps[0].expected
    assert "18 of them ties" in generation.describe()
    strict = checked(ToyEngine(lambda past: close(past, -5e-5)), references, tolerance="close")
    assert (strict.outcome.status, strict.right) == (Status.MISMATCH, 0)


@pytest.mark.parametrize(
    ("spoil", "fails"),
    [
        (lambda past, new, in_engine: past[:, : -new + 1] if 1 < new < past.shape[1] else past, {"prompt in chunks"}),
        (lambda past, new, in_engine: past * (past[0, 0] != 1 or past.shape[1] != 3), {"prompt token by token"}),
        (lambda past, new, in_engine: past[:1].repeat(len(past), 0), {"prompts in a batch"}),
        (lambda past, new, in_engine: past + (in_engine and past.shape[1] > 5), {"state held by the engine"}),
    ],
    ids=["chunks", "one by one", "rows", "held"],
)
def test_a_state_that_is_wrong_in_one_way_only(spoil, fails, checked):
    generation = checked(ToyEngine(spoil=spoil))
    assert generation.tokens == "18/18"
    assert generation.outcome.status is Status.MISMATCH
    bad = {name for name, status in further(generation).items() if status is FurtherStatus.MISMATCH}
    assert bad == fails
    assert all(name in generation.outcome.error.message for name in fails)
    assert not all(output.passed for output in generation.outcome.outputs)


def test_a_state_that_cannot_be_set_back_shows(checked):
    generation = checked(ToyEngine(takes=lambda past: past.shape[1] == 0))
    assert further(generation)["back to an earlier state"] is FurtherStatus.MISMATCH
    assert generation.outcome.status is Status.MISMATCH


def test_a_first_step_of_one_token_fails_only_if_the_range_has_it(checked):
    def refuses_one(past):
        if past.shape[1] == 1:
            raise EngineRunError("one token")
        return logits_of(past)

    assert checked(ToyEngine(refuses_one), divisible=False).outcome.status is Status.ERROR
    assert checked(ToyEngine(refuses_one), divisible=False, takes_one=False).outcome.status is Status.PASS


def test_an_archive_of_one_token_a_step_takes_the_prompt_token_by_token(checked):
    generation = checked(ToyEngine(shape=(1, 1), holds="no cache"))
    assert (generation.outcome.status, generation.tokens) == (Status.PASS, "18/18")
    assert {name for name, status in further(generation).items() if status is FurtherStatus.SKIPPED} == {
        "prompt in chunks",
        "prompt token by token",
        "prompts in a batch",
        "state held by the engine",
    }
    assert generation.outcome.facts["ways"]["state held by the engine"] == "skipped: no cache"
    assert len(checked(ToyEngine(holds=False)).further) == 4


def test_a_model_that_takes_whole_prompts_only(checked):
    generation = checked(ToyEngine(), divisible=False)
    skipped = {name for name, status in further(generation).items() if status is FurtherStatus.SKIPPED}
    assert skipped == {"prompt in chunks", "prompt token by token"}
    assert generation.outcome.status is Status.PASS


def test_one_token_throughout_is_weak(checked):
    def constant(past):
        logits = logits_of(past).copy()
        logits[:, 4] = 20
        return logits

    generation = checked(ToyEngine(constant), [continuation(prompt, logits=constant) for prompt in PROMPTS])
    assert (generation.outcome.status, generation.outcome.error.error_class) == (Status.WEAK, "WeakCheck")
    assert generation.passed
    assert "all 18 are the same one, 4" in generation.outcome.error.message


def test_logits_that_need_no_state_are_weak(checked):
    def forgetful(past):
        return logits_of(past[:, -1:])

    generation = checked(ToyEngine(forgetful), [continuation(prompt, logits=forgetful) for prompt in PROMPTS])
    assert generation.outcome.status is Status.WEAK
    assert "the same without any state" in generation.outcome.error.message


def test_a_crash_is_an_outcome_with_the_steps_before_it(checked):
    def dies(past):
        if past.shape[1] == 7:
            raise EngineCrash("step 4: panicked")
        return logits_of(past)

    generation = checked(ToyEngine(dies))
    assert (generation.outcome.status, generation.outcome.error.message) == (Status.CRASH, "step 4: panicked")
    assert len(generation.steps) == 3
    assert "3 of 18 tokens were generated before" in generation.outcome.error.hint
    with pytest.raises(EngineCrash):
        generation.raise_for_failure()


def test_halves_are_compared_as_float16(checked):
    """`generate` widens logits to float32, which is no difference of type."""
    references = [
        continuation(prompt, logits=lambda ids: logits_of(ids).astype("f2").astype("f4")) for prompt in PROMPTS
    ]
    generation = checked(ToyEngine(lambda past: logits_of(past).astype("f2")), references)
    assert generation.outcome.status is Status.PASS
    assert generation.steps[0].logits.dtype == "float16"


def test_what_cannot_be_checked(checked):
    with pytest.raises(InputError, match="needs a prompt and a step"):
        checked(ToyEngine(), [])
    with pytest.raises(InputError, match="not a tolerance level"):
        checked(ToyEngine(), tolerance="near")
    generation = checked(ToyEngine(shape=(3, "S")))
    assert "takes batches of 3" in generation.outcome.error.message
