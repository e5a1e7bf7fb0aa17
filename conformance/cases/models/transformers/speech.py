"""Speech and audio models of transformers."""

from __future__ import annotations

from collections.abc import Callable

import torch

from conformance.cases.models.case import Inputs, ModelCase, tokens
from conformance.cases.models.transformers.presets import SEQ2SEQ, SIZES, WORDS, model

SPEECH = {
    **SIZES, "intermediate_size": 48, "conv_dim": (16, 16, 24), "conv_kernel": (10, 3, 3), "conv_stride": (5, 2, 2),
    "num_feat_extract_layers": 3, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4,
}  # fmt: skip
WAVES = {"input_values": {0: "B", 1: "T"}}


def _waves(size: int) -> Callable[[], Inputs]:
    return lambda: {"input_values": torch.randn(2, size)}


CASES = {
    "whisper": ModelCase(
        model(
            "WhisperForConditionalGeneration",
            "WhisperConfig",
            **{**SEQ2SEQ, "max_position_embeddings": 64},
            num_mel_bins=8,
            max_source_positions=12,
            max_target_positions=20,
            use_cache=False,
        ),
        lambda: {"input_features": torch.randn(2, 8, 24), **tokens(WORDS, 2, 5, name="decoder_input_ids")()},
        {"input_features": {0: "B"}, "decoder_input_ids": {0: "B", 1: "T"}},
    ),
    "whisper_encoder": ModelCase(
        lambda: model(
            "WhisperModel", "WhisperConfig", **SEQ2SEQ, num_mel_bins=8, max_source_positions=12
        )().get_encoder(),
        lambda: {"input_features": torch.randn(2, 8, 24)},
        {"input_features": {0: "B"}},
    ),
    "wav2vec2": ModelCase(model("Wav2Vec2ForCTC", "Wav2Vec2Config", **SPEECH), _waves(800), WAVES),
    "wav2vec2_conformer": ModelCase(
        model("Wav2Vec2ConformerForCTC", "Wav2Vec2ConformerConfig", **SPEECH, conv_depthwise_kernel_size=5),
        _waves(800),
        WAVES,
    ),
    "wav2vec2_bert": ModelCase(
        model(
            "Wav2Vec2BertModel",
            "Wav2Vec2BertConfig",
            **SIZES,
            intermediate_size=48,
            feature_projection_input_dim=20,
            conv_depthwise_kernel_size=5,
        ),
        lambda: {"input_features": torch.randn(2, 13, 20)},
        {"input_features": {0: "B", 1: "T"}},
    ),
    "hubert": ModelCase(model("HubertForCTC", "HubertConfig", **SPEECH), _waves(800), WAVES),
    "wavlm": ModelCase(
        model("WavLMForCTC", "WavLMConfig", **SPEECH, num_buckets=32, max_bucket_distance=64),
        _waves(800),
        {"input_values": {0: "B"}},
    ),
    "data2vec_audio": ModelCase(
        model(
            "Data2VecAudioForCTC",
            "Data2VecAudioConfig",
            **{**SPEECH, "num_conv_pos_embeddings": 3},
            conv_pos_kernel_size=5,
        ),
        _waves(800),
        WAVES,
    ),
    "sew": ModelCase(
        model("SEWForCTC", "SEWConfig", **{**SPEECH, "conv_dim": (16, 16, 24)}, squeeze_factor=2),
        _waves(800),
        {"input_values": {0: "B"}},
    ),
    "ast": ModelCase(
        model(
            "ASTForAudioClassification",
            "ASTConfig",
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=48,
            patch_size=4,
            max_length=24,
            num_mel_bins=16,
            frequency_stride=3,
            time_stride=3,
        ),
        lambda: {"input_values": torch.randn(2, 24, 16)},
        {"input_values": {0: "B"}},
    ),
    "speech_to_text": ModelCase(
        lambda: model(
            "Speech2TextModel",
            "Speech2TextConfig",
            **SEQ2SEQ,
            input_feat_per_channel=10,
            conv_channels=16,
            max_source_positions=64,
            max_target_positions=20,
        )().get_encoder(),
        lambda: {"input_features": torch.randn(2, 24, 10)},
        {"input_features": {0: "B"}},
    ),
    "moonshine": ModelCase(
        lambda: model(
            "MoonshineModel",
            "MoonshineConfig",
            vocab_size=WORDS,
            hidden_size=32,
            intermediate_size=48,
            encoder_num_hidden_layers=2,
            decoder_num_hidden_layers=2,
            encoder_num_attention_heads=4,
            decoder_num_attention_heads=4,
            pad_head_dim_to_multiple_of=8,
        )().get_encoder(),
        _waves(2000),
        {"input_values": {0: "B"}},
    ),
    "encodec": ModelCase(
        lambda: (
            model(
                "EncodecModel",
                "EncodecConfig",
                num_filters=4,
                hidden_size=16,
                upsampling_ratios=[4, 2],
                codebook_size=16,
                num_lstm_layers=1,
            )().encoder
        ),
        lambda: {"hidden_states": torch.randn(1, 1, 160)},
    ),
    "mimi": ModelCase(
        lambda: (
            model(
                "MimiModel",
                "MimiConfig",
                num_filters=4,
                hidden_size=16,
                num_hidden_layers=1,
                upsampling_ratios=[4, 2],
                upsample_groups=16,
                codebook_size=16,
            )().encoder
        ),
        lambda: {"input_values": torch.randn(1, 1, 162)},
    ),
}
