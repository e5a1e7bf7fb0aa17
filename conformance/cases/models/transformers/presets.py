"""Small sizes of the families of transformers, and a model made of a configuration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import transformers as hf
from torch import nn

WORDS = 61
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": WORDS}
ENCODER = {**SIZES, "intermediate_size": 48, "max_position_embeddings": 64, "pad_token_id": 0}
VISION = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "image_size": 32,
    "patch_size": 8,
}
SEQ2SEQ = {
    "vocab_size": WORDS, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
}  # fmt: skip
TEXT = {"input_ids": {0: "B", 1: "T"}}


def model(name: str, config: str, **options: Any) -> Callable[[], nn.Module]:
    """Return a function that makes the model of that class, of a configuration with these options."""

    def make() -> nn.Module:
        built = getattr(hf, config)(**options)
        net: nn.Module = getattr(hf, name)(built)
        return net

    return make
