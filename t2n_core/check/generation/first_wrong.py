"""The first wrong node of the first step that differs.

    step = find_first_wrong_step(result, prompts=[[3, 1, 4]])
    print(step.describe())

The exported model is called step by step in PyTorch, which also provides the engine's inputs of each step, including
the state. So a wrong state shows in the step that computes it, before any wrong token.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from t2n_core.check.bisect import FirstWrongNode, first_wrong_of
from t2n_core.check.exported.archive import ExportedArchive
from t2n_core.check.generation.reference import Prompts, Stepper, continuations_of
from t2n_core.check.generation.result_check import check_result
from t2n_core.errors import InputError
from t2n_core.parity.comparison import compare, compare_outputs
from t2n_core.parity.generation.continuation import Continuation
from t2n_core.parity.generation.decoding import as_type_of
from t2n_core.parity.generation.outcome import GeneratedStep
from t2n_core.parity.judging.judgement import Judgement
from t2n_core.parity.samples import Sample
from t2n_core.parity.state_pairs import StatePair
from t2n_core.parity.tolerance import TractCheckTolerance
from t2n_core.rewriter.context import without_rewrites

_GROWS = "each step by itself is right: differences grow from step to step"
_MODEL = "the exported model generates other tokens than the reference model"


@dataclass(frozen=True, slots=True)
class FirstWrongStep:
    """The result of the search."""

    shown: GeneratedStep
    """The first step whose token or logits differ."""
    step: int | None = None
    """The first step that is wrong although its inputs are right, possibly before `shown`; None if there is none."""
    node: FirstWrongNode | None = None
    reason: str = ""
    """The reason if there is no such step."""

    def describe(self) -> str:
        """Return the result as text for a terminal."""
        if self.node is None:
            return f"{self.shown.describe()}\n{self.reason}"
        return f"{self.shown.describe()}\nwrong although its inputs are right: step {self.step}\n{self.node.describe()}"


def find_first_wrong_step(
    result: ExportedArchive,
    prompts: Prompts = None,
    steps: int = 32,
    tolerance: str | TractCheckTolerance | None = None,
    *,
    model: nn.Module | None = None,
    state: Sequence[StatePair] | None = None,
    timeout: float = 60.0,
) -> FirstWrongStep:
    """Return the first wrong node of a generation that fails `check_generation` with these arguments.

    `state` is the state before the first step, if not the export's own. `timeout` is in seconds for each run of the
    engine. Raises InputError if no step differs.
    """
    generation = check_result(result, prompts, steps, tolerance, model=model, state=state, timeout=timeout)
    shown, level = generation.first_different, generation.outcome.required
    if shown is None or level is None:
        if not generation.passed:
            generation.raise_for_failure()
        raise InputError("every step passes: there is no wrong node")
    continuation = continuations_of(result, prompts, steps, model=model, state=state)[0][shown.prompt]
    with torch.no_grad(), without_rewrites():
        stepper = Stepper(result, state)
        samples = list(_samples(stepper, continuation, shown.step))
        for step, sample in samples:
            reply = result.target.engine().run(result.archive, [sample.inputs], timeout=timeout)
            got = reply.outputs[0] if reply.status == "ok" else ()
            if not all(output.passed for output in compare_outputs(sample.expected, got, criteria=Judgement(level))):
                return FirstWrongStep(shown, step, first_wrong_of(result, level, sample, timeout))
        logits = stepper.logits(samples[-1][1])
    expected = as_type_of(continuation.logits[shown.step], logits)
    agrees = compare(expected, logits, criteria=Judgement(level)).passed
    return FirstWrongStep(shown, reason=_GROWS if agrees else _MODEL)


def _samples(stepper: Stepper, continuation: Continuation, last: int) -> Iterator[tuple[int, Sample]]:
    """Yield inputs and outputs of the exported model for each step up to the last one, fed with PyTorch's tokens."""
    ids, state = torch.from_numpy(continuation.prompt), stepper.initial
    for step in range(last + 1):
        for part in stepper.parts(ids):
            sample, state = stepper.sampled_step(part, state)
            yield step, sample
        ids = torch.tensor([[int(continuation.tokens[step])]])
