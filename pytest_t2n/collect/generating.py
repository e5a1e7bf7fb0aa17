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
    """A number of random prompts, or each prompt's tokens; None for the test's, or three random prompts."""
    batch: str | None = None
    """Symbol of a dynamic number of sequences; None for the example's."""
    last_logits: bool | int | str = False
    """Compute only the logits of a step's last token, or of this many; "input" makes the positions an input."""

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> GenerateOptions:
        """Return the options of a marker. Raises ValueError for a value of a wrong kind."""
        options = cls(**arguments)
        if isinstance(options.steps, bool) or not isinstance(options.steps, int) or options.steps < 1:
            raise ValueError(f"steps={options.steps!r} is not a number of tokens")
        if isinstance(options.prompts, str | bytes | bool | float):
            raise ValueError(f"prompts={options.prompts!r} is neither a number of prompts nor their tokens")
        if isinstance(options.prompts, int) and options.prompts < 1:
            raise ValueError(f"prompts={options.prompts}: at least one prompt is required")
        if options.batch is not None and not (isinstance(options.batch, str) and options.batch.isidentifier()):
            raise ValueError(f'batch={options.batch!r} is not the name of a size, such as "B"')
        if options.last_logits != "input" and (not isinstance(options.last_logits, int) or options.last_logits < 0):
            raise ValueError(f'last_logits={options.last_logits!r} is neither a number of tokens nor "input"')
        return options
