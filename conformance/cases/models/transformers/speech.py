"""Speech and audio models of transformers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from conformance.cases.models.case import Inputs, ModelCase, tokens
from conformance.cases.models.transformers.presets import SEQ2SEQ, SIZES, WORDS, model

SPEECH = {
    **SIZES, "intermediate_size": 48, "conv_dim": (16, 16, 24), "conv_kernel": (10, 3, 3), "conv_stride": (5, 2, 2),
    "num_feat_extract_layers": 3, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4,
}  # fmt: skip
WHISPER = {**SEQ2SEQ, "num_mel_bins": 8, "max_source_positions": 12}
FEATURES = {"input_features": {0: "B"}}
ONE_LENGTH = {"input_values": {0: "B"}}
WAVES = {"input_values": {0: "B", 1: "T"}}


SPECTRUM = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, "patch_size": 4,
    "max_length": 24, "num_mel_bins": 16, "frequency_stride": 3, "time_stride": 3,
}  # fmt: skip
MOONSHINE = {
    "vocab_size": WORDS, "hidden_size": 32, "intermediate_size": 48, "encoder_num_hidden_layers": 2,
    "decoder_num_hidden_layers": 2, "encoder_num_attention_heads": 4, "decoder_num_attention_heads": 4,
    "pad_head_dim_to_multiple_of": 8,
}  # fmt: skip
CODEC = {"num_filters": 4, "hidden_size": 16, "upsampling_ratios": [4, 2], "codebook_size": 16}


def _inputs(name: str, *shape: int) -> Callable[[], Inputs]:
    return lambda: {name: torch.randn(shape)}


def _of_waves(family: str, axes: Any = WAVES, **options: Any) -> ModelCase:
    return ModelCase(
        model(f"{family}ForCTC", f"{family}Config", **{**SPEECH, **options}), _inputs("input_values", 2, 800), axes
    )


def _encoder_of(family: str, **options: Any) -> Callable[[], nn.Module]:
    """Return a function that makes a model of a family and gives its encoder."""

    def make() -> nn.Module:
        full_model: Any = model(f"{family}Model", f"{family}Config", **options)()
        encoder: nn.Module = full_model.get_encoder() if hasattr(full_model, "get_encoder") else full_model.encoder
        return encoder

    return make


CASES = {
    "whisper": ModelCase(
        model(
            "WhisperForConditionalGeneration", "WhisperConfig", **WHISPER, max_target_positions=20, use_cache=False
        ),
        lambda: {"input_features": torch.randn(2, 8, 24), **tokens(WORDS, 2, 5, name="decoder_input_ids")()},
        {**FEATURES, "decoder_input_ids": {0: "B", 1: "T"}},
    ),
    "whisper_encoder": ModelCase(_encoder_of("Whisper", **WHISPER), _inputs("input_features", 2, 8, 24), FEATURES),
    "wav2vec2": _of_waves("Wav2Vec2"),
    "wav2vec2_conformer": _of_waves("Wav2Vec2Conformer", conv_depthwise_kernel_size=5),
    "wav2vec2_bert": ModelCase(
        model(
            "Wav2Vec2BertModel", "Wav2Vec2BertConfig", **SIZES, intermediate_size=48, feature_projection_input_dim=20,
            conv_depthwise_kernel_size=5,
        ),
        _inputs("input_features", 2, 13, 20),
        {"input_features": {0: "B", 1: "T"}},
    ),
    "hubert": _of_waves("Hubert"),
    "wavlm": _of_waves("WavLM", ONE_LENGTH, num_buckets=32, max_bucket_distance=64),
    "data2vec_audio": _of_waves("Data2VecAudio", num_conv_pos_embeddings=3, conv_pos_kernel_size=5),
    "sew": _of_waves("SEW", ONE_LENGTH, squeeze_factor=2),
    "ast": ModelCase(
        model("ASTForAudioClassification", "ASTConfig", **SPECTRUM), _inputs("input_values", 2, 24, 16), ONE_LENGTH
    ),
    "speech_to_text": ModelCase(
        _encoder_of(
            "Speech2Text", **SEQ2SEQ, input_feat_per_channel=10, conv_channels=16, max_source_positions=64,
            max_target_positions=20,
        ),
        _inputs("input_features", 2, 24, 10),
        FEATURES,
    ),
    "moonshine": ModelCase(_encoder_of("Moonshine", **MOONSHINE), _inputs("input_values", 2, 2000), ONE_LENGTH),
    "encodec": ModelCase(_encoder_of("Encodec", **CODEC, num_lstm_layers=1), _inputs("hidden_states", 1, 1, 160)),
    "mimi": ModelCase(
        _encoder_of("Mimi", **CODEC, num_hidden_layers=1, upsample_groups=16), _inputs("input_values", 1, 1, 162)
    ),
}  # fmt: skip
