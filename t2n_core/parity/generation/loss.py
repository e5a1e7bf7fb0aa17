"""Loss from weight compression: the archive's logits on a text, compared with those of the model in float32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from t2n_core.engine.pool import TractRunner
from t2n_core.engine.protocol import Array
from t2n_core.errors import InputError
from t2n_core.parity.generation.decoding import Decoder
from t2n_core.parity.state_pairs import StatePair


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

    def describe(self) -> str:
        """Return the figures as a line of text."""
        perplexity = f"perplexity {self.perplexity:.4g}, in float32 {self.reference:.4g}"
        rest = f"{100 * self.agreement:.1f} % of the best tokens agree, divergence {self.divergence:.2g} nats"
        return f"{perplexity}; {rest} ({self.tokens} tokens)"


def archive_logits(
    engine: TractRunner,
    archive: Path,
    state: Sequence[StatePair],
    text: Array,
    fixed: Mapping[str, Array],
    *,
    timeout: float = 60.0,
) -> Array:
    """Return the logits `[S, vocabulary]` after each token of a text `[1, S]`, run in one session of the engine.

    Raises EngineError, InputError.
    """
    pairs, initial = [(pair.input, pair.output) for pair in state], [pair.initial for pair in state]
    with engine.session(archive, state=pairs, initial=initial, timeout=timeout) as session:
        decoder = Decoder(session, state)
        decoder.start()
        return decoder.all_logits(text, fixed)


def weight_loss(text: Array, got: Array, wanted: Array) -> WeightLoss:
    """Return the loss on a text `[S]`, from logits `[S, vocabulary]` of the archive and of the model in float32.

    Raises InputError for a text of fewer than two tokens, of which none would be predicted.
    """
    if len(text) < 2:
        raise InputError("a text needs two tokens or more, for a perplexity")
    small, exact = _log_softmax(got), _log_softmax(wanted)
    places = np.arange(len(text) - 1)
    perplexity, reference = (float(np.exp(-one[places, text[1:]].mean())) for one in (small, exact))
    agreement = float((got.argmax(-1) == wanted.argmax(-1)).mean())
    probabilities = np.exp(exact)
    with np.errstate(invalid="ignore"):  # both are -inf for a token that a model forbids
        terms = np.where(probabilities > 0, probabilities * (exact - small), 0.0)
    return WeightLoss(len(text), perplexity, reference, agreement, float(terms.sum(-1).mean()))


def _log_softmax(logits: Array) -> Array:
    wide = logits.astype(np.float64)
    wide -= wide.max(-1, keepdims=True)
    found: Array = wide - np.log(np.exp(wide).sum(-1, keepdims=True))
    return found
