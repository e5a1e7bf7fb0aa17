"""Models of transformers for text with pictures, for time series and for any input."""

from __future__ import annotations

from typing import Any

import torch

from conformance.cases.models.case import Inputs, ModelCase, image, tokens
from conformance.cases.models.transformers.presets import ENCODER, VISION, WORDS, model

TOWERS = {
    "text_config": {**ENCODER, "max_position_embeddings": 16, "eos_token_id": 2, "bos_token_id": 1},
    "vision_config": VISION,
}  # fmt: skip


PATCHES = {
    "context_length": 32, "patch_length": 4, "patch_stride": 4, "num_input_channels": 3, "prediction_length": 6,
}  # fmt: skip
PERCEIVER = {
    "num_latents": 6, "d_latents": 16, "d_model": 20, "num_self_attends_per_block": 2,
    "num_self_attention_heads": 4, "num_cross_attention_heads": 4,
}  # fmt: skip
BATCHES = {"input_ids": {0: "B"}, "pixel_values": {0: "C"}}


def _series(family: str, **options: Any) -> ModelCase:
    make = model(f"{family}ForPrediction", f"{family}Config", **PATCHES, **options)
    return ModelCase(make, lambda: {"past_values": torch.randn(2, 32, 3)}, {"past_values": {0: "B"}})


def _pictured_text() -> Inputs:
    return {**tokens(WORDS, 2, 7)(), **image(2, 3, 32, 32, name="pixel_values")()}


CASES = {
    "clip": ModelCase(model("CLIPModel", "CLIPConfig", **TOWERS, projection_dim=16), _pictured_text, BATCHES),
    "siglip": ModelCase(model("SiglipModel", "SiglipConfig", **TOWERS), _pictured_text, BATCHES),
    "patchtst": _series("PatchTST", d_model=16, num_hidden_layers=2, num_attention_heads=4, ffn_dim=24, loss="mse"),
    "patchtsmixer": _series("PatchTSMixer", d_model=8, num_layers=2),
    "perceiver": ModelCase(
        model("PerceiverModel", "PerceiverConfig", **PERCEIVER),
        lambda: {"inputs": torch.randn(2, 11, 20)},
        {"inputs": {0: "B"}},
    ),
}
