"""What a case of the suite `generative` is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch

VOCABULARY: Final = 97
WINDOW: Final = 6
"""Tokens of sliding windows: prompts and steps go past them."""
TEXT: Final[Mapping[str, Any]] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
"""The options that most configurations of decoders have, with heads in groups."""


@dataclass(frozen=True, slots=True)
class GenerativeCase:
    """One architecture. `make` and `inputs` run under a fixed seed, so that every session sees the same values."""

    make: Callable[[], Any]
    inputs: Callable[[], dict[str, torch.Tensor]] | None = None
    """The inputs of an encoder."""
    spread: float = 3.0
    """The factor of all matrices: random ones as they are give the same token at every step."""

    def build(self, seed: int, *, spread: float | None = None) -> tuple[Any, dict[str, torch.Tensor] | None]:
        """Return the model and an encoder's inputs; `spread` takes the place of the case's."""
        torch.manual_seed(seed)
        model = self.make().eval()
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() > 1:
                    parameter.mul_(self.spread if spread is None else spread)
        return model, None if self.inputs is None else self.inputs()


def case_of(
    family: str,
    head: str = "ForCausalLM",
    *,
    config: str = "",
    inputs: Callable[[], dict[str, torch.Tensor]] | None = None,
    spread: float = 3.0,
    **options: Any,
) -> GenerativeCase:
    """Return the case of a family of transformers: its model with this head, configured with these options."""
    from conformance.cases.models.transformers.presets import model

    return GenerativeCase(model(f"{family}{head}", config or f"{family}Config", **options), inputs, spread)


def without(*names: str, **more: Any) -> dict[str, Any]:
    """Return the common options but some, and others besides."""
    return {**{name: value for name, value in TEXT.items() if name not in names}, **more}
