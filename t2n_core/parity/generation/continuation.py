"""Prompts with the tokens that PyTorch generates after them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from t2n_core.engine.protocol import Array


@dataclass(frozen=True, slots=True, eq=False)
class Continuation:
    """One prompt and its greedy continuation, with the logits that each token was taken from."""

    prompt: Array
    """int64[1, S]"""
    tokens: Array
    """int64[steps]"""
    logits: Array
    """float[steps, vocabulary]; the first row comes after the prompt."""
    fixed: Mapping[str, Array] = field(default_factory=dict)
    """Inputs that are the same in each step, by name, such as the output of an encoder."""

    @property
    def steps(self) -> int:
        return len(self.tokens)
