"""The arguments of the marker `nnef_generate` about tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

GENERATING = ("steps", "prompts", "batch", "last_logits")
"""Keyword arguments of `nnef_generate` that `nnef_export` lacks."""
STEPS = 32


@dataclass(frozen=True, slots=True)
class GenerateOptions:
    """Options for the tokens that a test generates."""

    steps: int = STEPS
    """Number of tokens to generate after each prompt."""
    prompts: Any = None
    """A number of random prompts, or the tokens of each; None for those that the test returns, or three."""
    batch: str | None = None
    """Symbol of a dynamic number of sequences; None for that of the example."""
    last_logits: bool | int | str = False
    """Compute only the logits of the last token of a step, or of so many; "input" makes the positions an input."""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> GenerateOptions:
        """Return the options of a marker. Raises ValueError for a value of a wrong kind."""
        found = cls(**given)
        if isinstance(found.steps, bool) or not isinstance(found.steps, int) or found.steps < 1:
            raise ValueError(f"steps={found.steps!r} is not a number of tokens")
        if isinstance(found.prompts, str | bytes | bool | float):
            raise ValueError(f"prompts={found.prompts!r} is neither a number of prompts nor their tokens")
        if isinstance(found.prompts, int) and found.prompts < 1:
            raise ValueError(f"prompts={found.prompts}: at least one prompt is required")
        if found.batch is not None and not (isinstance(found.batch, str) and found.batch.isidentifier()):
            raise ValueError(f'batch={found.batch!r} is not the name of a size, such as "B"')
        if found.last_logits != "input" and (not isinstance(found.last_logits, int) or found.last_logits < 0):
            raise ValueError(f'last_logits={found.last_logits!r} is neither a number of tokens nor "input"')
        return found
