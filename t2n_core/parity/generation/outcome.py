"""The outcome of a generation: right tokens, the first step that differs, and the comparison of each step."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from t2n_core.level import LEVELS, TractCheckTolerance
from t2n_core.parity.comparison import OutputComparison
from t2n_core.parity.outcome import Outcome

TOKENS = "tokens"
"""Fact of an outcome: the number of right tokens and of all, as `64/64`."""


class Verdict(StrEnum):
    """Judgement of the token of a step."""

    RIGHT = "right"
    TIE = "tie"
    """Another token than PyTorch's, with logits so close that the tolerance covers their difference."""
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class GeneratedStep:
    """One step of one prompt."""

    prompt: int
    """Index of the prompt."""
    step: int
    """0 for the token after the prompt."""
    expected: int
    """PyTorch's token."""
    got: int
    """The engine's token."""
    verdict: Verdict
    logits: OutputComparison

    @property
    def passed(self) -> bool:
        return self.verdict is not Verdict.WRONG and self.logits.passed

    def describe(self) -> str:
        """Return a sentence about the step."""
        where = f"step {self.step} of prompt {self.prompt}"
        if self.verdict is Verdict.WRONG:
            return f"{where}: token {self.got}, PyTorch's is {self.expected}"
        tie = f", a tie with {self.got}" if self.verdict is Verdict.TIE else ""
        return f"{where}: token {self.expected}{tie}, logits differ beyond `{self.logits.required.value}`"


class FurtherStatus(StrEnum):
    """The ways in which a further check can end."""

    PASS = "pass"
    MISMATCH = "mismatch"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class FurtherCheck:
    """A variant with the same tokens: the prompt in chunks, prompts in a batch, a return to an earlier state."""

    name: str
    status: FurtherStatus
    reason: str = ""
    """The reason why it was skipped, or the first difference."""
    worst: OutputComparison | None = None
    """The worst comparison of logits."""

    @property
    def text(self) -> str:
        return f"{self.status.value}: {self.reason}" if self.reason else self.status.value


@dataclass(frozen=True, slots=True)
class GenerationOutcome:
    """The result of a check of an archive that generates."""

    outcome: Outcome
    """Status, stage, engine and level, as for any check; `outputs` has the worst step, and each variant's."""
    steps: tuple[GeneratedStep, ...] = ()
    """Every step that was compared, prompt by prompt; a prompt ends with its first wrong token."""
    total: int = 0
    """Tokens that were to be compared."""
    further: tuple[FurtherCheck, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences about gaps of the prompts, such as the end of a sliding window."""

    @property
    def passed(self) -> bool:
        return self.outcome.passed

    @property
    def right(self) -> int:
        """Return how many tokens are right; a tie counts as right."""
        return sum(step.verdict is not Verdict.WRONG for step in self.steps)

    @property
    def tokens(self) -> str:
        """Return the number of right tokens and of all, as `64/64`."""
        return f"{self.right}/{self.total}"

    @property
    def ties(self) -> int:
        return sum(step.verdict is Verdict.TIE for step in self.steps)

    @property
    def first_different(self) -> GeneratedStep | None:
        """Return the first step whose token is wrong or whose logits are outside the level."""
        return next((step for step in self.steps if not step.passed), None)

    @property
    def level(self) -> TractCheckTolerance | None:
        return self.outcome.level

    def describe(self) -> str:
        """Return the result as text for a terminal."""
        ties = f", {self.ties} of them ties" if self.ties else ""
        lines = [f"tokens {self.tokens}{ties}"]
        lines += [f"  {check.name}: {check.text}" for check in self.further]
        lines += [f"  {note}" for note in self.notes]
        return "\n".join([self.outcome.describe(), *lines])

    def raise_for_failure(self) -> GenerationOutcome:
        """Return the outcome itself if it is a pass, and raise otherwise, as `Outcome.raise_for_failure` does."""
        __tracebackhide__ = True
        self.outcome.raise_for_failure()
        return self


def badness(output: OutputComparison) -> tuple[bool, int, float]:
    """Return a key that is largest for the worst comparison."""
    rank = len(LEVELS) if output.level is None else output.level.rank
    return not output.passed, rank, float(output.max_abs)
