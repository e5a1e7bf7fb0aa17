"""Loss from weight compression: the archive's logits on a text, compared with the model's in float32.

The text is divided into windows, and both begin anew in each. The perplexity is

    exp(-1/N * sum of ln p(token | tokens before it in its window)),

where the sum is over the N tokens that are not the first of their window.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from t2n_core.engine.pool import TractRunner
from t2n_core.engine.protocol import Array
from t2n_core.errors import InputError
from t2n_core.parity.generation.decoding import Decoder
from t2n_core.parity.state_pairs import StatePair

WINDOW: Final = 2048
"""Most tokens of a window: models that take more would need more memory for the logits of one."""
_ROWS: Final = 64
"""Rows of logits that are in memory in float64 at the same time."""


@dataclass(frozen=True, slots=True)
class WeightLoss:
    """The logits after each token of a text, by the archive and by the model in float32."""

    tokens: int
    """Tokens of the text."""
    perplexity: float
    """The archive's: the exponential of the mean negative log-likelihood of each next token of the text."""
    reference: float
    """The same of the model in float32."""
    agreement: float
    """The share of positions with the same best token."""
    divergence: float
    """Mean Kullback-Leibler divergence of the archive's distribution from the model's, in nats."""
    windows: int = 1
    """Parts of the text, each begun without the previous ones."""

    @property
    def increase(self) -> float:
        """Return the share by which the archive's perplexity is larger than the model's."""
        return self.perplexity / self.reference - 1

    def describe(self) -> str:
        """Return the figures as a line of text."""
        perplexity = f"perplexity {self.perplexity:.4g}, in float32 {self.reference:.4g} ({100 * self.increase:+.2f} %)"
        rest = f"{100 * self.agreement:.1f} % of the best tokens agree, divergence {self.divergence:.2g} nats"
        return f"{perplexity}; {rest} ({self.length})"

    @property
    def length(self) -> str:
        """Return the number of tokens, and of windows if there are several, as text."""
        return f"{self.tokens} tokens" + (f" in {self.windows} windows" if self.windows > 1 else "")


def require_tokens(text: Sequence[int] | Array, least: int = 2) -> None:
    """Raise InputError for a text of fewer than `least` tokens, or than two, of which none would be predicted."""
    if len(text) < max(least, 2):
        count = "1 token" if len(text) == 1 else f"{len(text)} tokens"
        needs = f"this decoder needs {least} or more" if least > 2 else "a perplexity needs two or more"
        raise InputError(f"the text has {count}: {needs}")


def windows_of(text: Array, most: int | None = None, least: int = 1) -> list[Array]:
    """Return the windows of a text `[S]`, one after the other, each of `most` tokens but the last one.

    A last window of fewer than `least` tokens is left out, as is one of one token, which predicts none. Raises
    InputError for a text that is this short.
    """
    require_tokens(text, least)
    size = min(most or WINDOW, max(WINDOW, least))
    return [part for part in np.split(text, range(size, len(text), size)) if len(part) >= max(least, 2)]


def archive_logits(
    engine: TractRunner,
    archive: Path,
    state: Sequence[StatePair],
    windows: Iterable[Array],
    fixed: Mapping[str, Array],
    *,
    timeout: float = 60.0,
) -> Generator[Array, None, None]:
    """Yield the logits `[S, vocabulary]` after each token of a window `[S]`, run in one session of the engine.

    Raises EngineError, InputError.
    """
    pairs, initial = [(pair.input, pair.output) for pair in state], [pair.initial for pair in state]
    with engine.session(archive, state=pairs, initial=initial, timeout=timeout) as session:
        decoder = Decoder(session, state)
        for window in windows:
            decoder.start()
            yield decoder.all_logits(window[None], fixed)


def weight_loss(windows: Iterable[tuple[Array, Array, Array]]) -> WeightLoss:
    """Return the loss on a text, from its windows.

    Each window is its tokens `[S]`, and logits `[S, vocabulary]` of the archive and of the model in float32.
    """
    count, tokens, agreeing, divergence, unlikely = 0, 0, 0, 0.0, np.zeros(2)
    for text, got, expected in windows:
        count, tokens = count + 1, tokens + len(text)
        for start in range(0, len(text), _ROWS):
            rows = slice(start, start + _ROWS)
            small, exact = _log_softmax(got[rows]), _log_softmax(expected[rows])
            following = text[start + 1 : start + 1 + len(small)]
            places = np.arange(len(following))
            unlikely -= [distribution[places, following].sum() for distribution in (small, exact)]
            agreeing += int((got[rows].argmax(-1) == expected[rows].argmax(-1)).sum())
            probabilities = np.exp(exact)
            with np.errstate(invalid="ignore"):  # both are -inf for a token that a model forbids
                terms = np.where(probabilities > 0, probabilities * (exact - small), 0.0)
            divergence += float(terms.sum())
    perplexity, reference = (float(value) for value in np.exp(unlikely / (tokens - count)))
    return WeightLoss(tokens, perplexity, reference, agreeing / tokens, divergence / tokens, count)


def _log_softmax(logits: Array) -> Array:
    wide = logits.astype(np.float64)
    wide -= wide.max(-1, keepdims=True)
    log_probabilities: Array = wide - np.log(np.exp(wide).sum(-1, keepdims=True))
    return log_probabilities
