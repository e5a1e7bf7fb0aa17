"""Encoders with decoders that look at what they give: speech and text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from conformance.cases.generative.case import VOCABULARY, GenerativeCase, case_of

_BART: dict[str, Any] = {
    "vocab_size": VOCABULARY, "d_model": 32, "encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2, "decoder_start_token_id": 1,
}  # fmt: skip


def _case(family: str, inputs: Callable[[], dict[str, torch.Tensor]], **options: Any) -> GenerativeCase:
    return case_of(family, "ForConditionalGeneration", inputs=inputs, **options)


def _text() -> dict[str, torch.Tensor]:
    return {"input_ids": torch.randint(3, VOCABULARY, (1, 11))}


CASES = {
    "whisper": _case(
        "Whisper", lambda: {"input_features": torch.randn(1, 8, 40)}, **_BART, max_source_positions=20,
        max_target_positions=64, num_mel_bins=8,
    ),
    "moonshine": _case(
        "Moonshine", lambda: {"input_values": torch.randn(1, 4000)}, vocab_size=VOCABULARY, hidden_size=32,
        intermediate_size=48, encoder_num_hidden_layers=1, decoder_num_hidden_layers=2, encoder_num_attention_heads=4,
        decoder_num_attention_heads=4, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
    ),
    "t5": _case(
        "T5", _text, vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4,
        decoder_start_token_id=0,
    ),
    "bart": _case("Bart", _text, **_BART, max_position_embeddings=64),
    "mbart": _case("MBart", _text, **_BART, max_position_embeddings=64),
    "pegasus": _case("Pegasus", _text, **_BART, max_position_embeddings=64),
    "speech-to-text": _case(
        "Speech2Text", lambda: {"input_features": torch.randn(1, 24, 8)}, **_BART, input_feat_per_channel=8,
        conv_channels=16, max_source_positions=40, max_target_positions=64,
    ),
}  # fmt: skip
"""By name."""
