"""Architectures of transformers: language models, encoders, speech, vision, text with pictures, time series."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers as hf
from torch import nn

from conformance.suites.model_cases import Inputs, ModelCase, image, tokens

WORDS = 61
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": WORDS}
DECODER = {
    **SIZES,
    "intermediate_size": 48,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
ENCODER = {**SIZES, "intermediate_size": 48, "max_position_embeddings": 64, "pad_token_id": 0}
VISION = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "image_size": 32,
    "patch_size": 8,
}
SPEECH = {
    **SIZES, "intermediate_size": 48, "conv_dim": (16, 16, 24), "conv_kernel": (10, 3, 3), "conv_stride": (5, 2, 2),
    "num_feat_extract_layers": 3, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4,
}  # fmt: skip
SEQ2SEQ = {
    "vocab_size": WORDS, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
}  # fmt: skip
TEXT = {"input_ids": {0: "B", 1: "T"}}
STEPS = {"input_ids": {0: "B"}}
"""A loop over time in Python is unrolled, so its length is fixed."""
IMAGES = {"pixel_values": {0: "B"}}
WAVES = {"input_values": {0: "B", 1: "T"}}


def _model(model: str, config: str, **options: Any) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        built = getattr(hf, config)(**options)
        net: nn.Module = getattr(hf, model)(built)
        return net

    return make


def _decoder(family: str, config: str = "", axes: Any = TEXT, **options: Any) -> ModelCase:
    make = _model(f"{family}ForCausalLM", config or f"{family}Config", **{"use_cache": False, **options})
    return ModelCase(make, tokens(WORDS, 2, 9), axes)


def _encoder(family: str, head: str = "Model", inputs: Callable[[], Inputs] | None = None, **options: Any) -> ModelCase:
    return ModelCase(_model(f"{family}{head}", f"{family}Config", **options), inputs or tokens(WORDS, 2, 9), TEXT)


def _masked() -> Inputs:
    mask = torch.ones(2, 9, dtype=torch.int64)
    mask[1, 6:] = 0
    return {**tokens(WORDS, 2, 9)(), "attention_mask": mask}


def _translation() -> Inputs:
    return {**tokens(WORDS, 2, 9)(), **tokens(WORDS, 2, 5, name="decoder_input_ids")()}


BOTH_TEXTS = {"input_ids": {0: "B", 1: "S"}, "decoder_input_ids": {0: "B", 1: "T"}}


def _waves(size: int) -> Callable[[], Inputs]:
    return lambda: {"input_values": torch.randn(2, size)}


def _vision(family: str, head: str = "Model", side: int = 32, **options: Any) -> ModelCase:
    make = _model(f"{family}{head}", f"{family}Config", **options)
    return ModelCase(make, image(2, 3, side, side, name="pixel_values"), IMAGES)


def _pictured_text() -> Inputs:
    return {**tokens(WORDS, 2, 7)(), **image(2, 3, 32, 32, name="pixel_values")()}


TOWERS = {
    "text_config": {**ENCODER, "max_position_embeddings": 16, "eos_token_id": 2, "bos_token_id": 1},
    "vision_config": VISION,
}  # fmt: skip

CASES = {
    # decoder-only language models
    "gpt2": ModelCase(
        _model(
            "GPT2LMHeadModel",
            "GPT2Config",
            vocab_size=WORDS,
            n_positions=64,
            n_embd=32,
            n_layer=2,
            n_head=4,
            use_cache=False,
        ),
        tokens(WORDS, 2, 9),
        TEXT,
    ),
    "gpt_neo": _decoder(
        "GPTNeo",
        vocab_size=WORDS,
        hidden_size=32,
        num_layers=2,
        num_heads=4,
        attention_types=[[["global", "local"], 1]],
        window_size=4,
        max_position_embeddings=64,
    ),
    "gpt_neox": _decoder("GPTNeoX", **ENCODER),
    "gptj": _decoder("GPTJ", vocab_size=WORDS, n_positions=64, n_embd=32, n_layer=2, n_head=4, rotary_dim=4),
    "opt": _decoder("OPT", **SIZES, ffn_dim=48, word_embed_proj_dim=32, max_position_embeddings=64, pad_token_id=0),
    "bloom": _decoder("Bloom", vocab_size=WORDS, hidden_size=32, n_layer=2, n_head=4),
    "falcon": _decoder("Falcon", **SIZES, alibi=False),
    "mpt": _decoder("Mpt", vocab_size=WORDS, d_model=32, n_layers=2, n_heads=4, max_seq_len=64),
    "llama": _decoder("Llama", **DECODER),
    "mistral": _decoder("Mistral", **DECODER, sliding_window=4),
    "qwen2": _decoder("Qwen2", **DECODER),
    "qwen3": _decoder("Qwen3", **DECODER),
    "gemma2": _decoder("Gemma2", **DECODER, sliding_window=4, query_pre_attn_scalar=8),
    "gemma3": _decoder("Gemma3", "Gemma3TextConfig", **DECODER, sliding_window=4),
    "phi": _decoder("Phi", **ENCODER),
    "phi3": _decoder("Phi3", **ENCODER),
    "cohere": _decoder("Cohere", **DECODER),
    "olmo2": _decoder("Olmo2", **DECODER),
    "stablelm": _decoder("StableLm", **ENCODER, num_key_value_heads=4),
    "smollm3": _decoder("SmolLM3", **DECODER),
    "mixtral": _decoder("Mixtral", **DECODER, num_local_experts=4, num_experts_per_tok=2),
    "qwen2_moe": _decoder(
        "Qwen2Moe",
        **DECODER,
        num_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=16,
        shared_expert_intermediate_size=24,
    ),
    "deepseek_v3": _decoder(
        "DeepseekV3",
        **{**DECODER, "num_key_value_heads": 4, "head_dim": 4},
        n_routed_experts=4,
        num_experts_per_tok=2,
        n_group=2,
        topk_group=1,
        moe_intermediate_size=16,
        first_k_dense_replace=1,
        q_lora_rank=12,
        kv_lora_rank=8,
        qk_rope_head_dim=4,
        qk_nope_head_dim=4,
        v_head_dim=8,
    ),
    # state space and linear attention
    "mamba": _decoder(
        "Mamba",
        axes=STEPS,
        vocab_size=WORDS,
        hidden_size=24,
        state_size=6,
        num_hidden_layers=2,
        time_step_rank=3,
        intermediate_size=48,
        pad_token_id=0,
    ),
    "mamba2": _decoder(
        "Mamba2",
        axes=STEPS,
        vocab_size=WORDS,
        hidden_size=24,
        state_size=6,
        num_hidden_layers=2,
        num_heads=6,
        head_dim=8,
        n_groups=2,
        chunk_size=4,
        expand=2,
        pad_token_id=0,
    ),
    "rwkv": _decoder(
        "Rwkv",
        axes=STEPS,
        vocab_size=WORDS,
        hidden_size=32,
        attention_hidden_size=32,
        num_hidden_layers=2,
        context_length=64,
    ),
    "recurrent_gemma": _decoder(
        "RecurrentGemma", axes=STEPS, **{**DECODER, "num_hidden_layers": 3}, lru_width=32, attention_window_size=8
    ),
    # encoders
    "bert": _encoder("Bert", **ENCODER),
    "bert_masked": ModelCase(
        _model("BertForTokenClassification", "BertConfig", **ENCODER),
        _masked,
        {"input_ids": {0: "B", 1: "T"}, "attention_mask": {0: "B", 1: "T"}},
    ),
    "roberta": _encoder("Roberta", **ENCODER),
    "distilbert": _encoder(
        "DistilBert", vocab_size=WORDS, dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=64
    ),
    "albert": _encoder("Albert", **ENCODER, embedding_size=16),
    "electra": _encoder("Electra", **ENCODER, embedding_size=16),
    "deberta_v2": _encoder(
        "DebertaV2", **ENCODER, relative_attention=True, pos_att_type=["c2p", "p2c"], position_buckets=8
    ),
    "mpnet": _encoder("MPNet", **ENCODER),
    "mobilebert": _encoder(
        "MobileBert", **{**ENCODER, "hidden_size": 32}, embedding_size=16, intra_bottleneck_size=16, true_hidden_size=16
    ),
    "squeezebert": _encoder("SqueezeBert", **ENCODER, embedding_size=32),
    "modernbert": _encoder("ModernBert", **ENCODER, local_attention=4, global_attn_every_n_layers=2),
    "xlnet": _encoder("XLNet", vocab_size=WORDS, d_model=32, n_layer=2, n_head=4, d_inner=48, use_mems_eval=False),
    "fnet": _encoder(
        "FNet", vocab_size=WORDS, hidden_size=32, num_hidden_layers=2, intermediate_size=48, max_position_embeddings=64
    ),
    "longformer": ModelCase(
        _model("LongformerModel", "LongformerConfig", **ENCODER, attention_window=[4, 4]), tokens(WORDS, 2, 9)
    ),
    # encoder and decoder
    "t5": ModelCase(
        _model(
            "T5ForConditionalGeneration",
            "T5Config",
            vocab_size=WORDS,
            d_model=32,
            d_kv=8,
            d_ff=48,
            num_layers=2,
            num_heads=4,
            use_cache=False,
        ),
        _translation,
        BOTH_TEXTS,
    ),
    "bart": ModelCase(
        _model("BartForConditionalGeneration", "BartConfig", **SEQ2SEQ, use_cache=False), _translation, BOTH_TEXTS
    ),
    "marian": ModelCase(_model("MarianMTModel", "MarianConfig", **SEQ2SEQ, use_cache=False), _translation, BOTH_TEXTS),
    # speech
    "whisper": ModelCase(
        _model(
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
        lambda: _model(
            "WhisperModel", "WhisperConfig", **SEQ2SEQ, num_mel_bins=8, max_source_positions=12
        )().get_encoder(),
        lambda: {"input_features": torch.randn(2, 8, 24)},
        {"input_features": {0: "B"}},
    ),
    "wav2vec2": ModelCase(_model("Wav2Vec2ForCTC", "Wav2Vec2Config", **SPEECH), _waves(800), WAVES),
    "wav2vec2_conformer": ModelCase(
        _model("Wav2Vec2ConformerForCTC", "Wav2Vec2ConformerConfig", **SPEECH, conv_depthwise_kernel_size=5),
        _waves(800),
        WAVES,
    ),
    "wav2vec2_bert": ModelCase(
        _model(
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
    "hubert": ModelCase(_model("HubertForCTC", "HubertConfig", **SPEECH), _waves(800), WAVES),
    "wavlm": ModelCase(
        _model("WavLMForCTC", "WavLMConfig", **SPEECH, num_buckets=32, max_bucket_distance=64),
        _waves(800),
        {"input_values": {0: "B"}},
    ),
    "data2vec_audio": ModelCase(
        _model(
            "Data2VecAudioForCTC",
            "Data2VecAudioConfig",
            **{**SPEECH, "num_conv_pos_embeddings": 3},
            conv_pos_kernel_size=5,
        ),
        _waves(800),
        WAVES,
    ),
    "sew": ModelCase(
        _model("SEWForCTC", "SEWConfig", **{**SPEECH, "conv_dim": (16, 16, 24)}, squeeze_factor=2),
        _waves(800),
        {"input_values": {0: "B"}},
    ),
    "ast": ModelCase(
        _model(
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
        lambda: _model(
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
        lambda: _model(
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
            _model(
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
            _model(
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
        lambda: {"hidden_states": torch.randn(1, 1, 162)},
    ),
    # vision
    "vit": _vision("ViT", "ForImageClassification", **VISION),
    "deit": _vision("DeiT", "ForImageClassificationWithTeacher", **VISION),
    "beit": _vision("Beit", "ForImageClassification", **VISION, use_relative_position_bias=True),
    "dinov2": _vision("Dinov2", "ForImageClassification", **{**VISION, "intermediate_size": 48}, mlp_ratio=2),
    "swin": _vision(
        "Swin",
        "ForImageClassification",
        side=36,
        image_size=36,
        patch_size=2,
        embed_dim=16,
        depths=[2, 2],
        num_heads=[2, 4],
        window_size=3,
    ),
    "swin_v2": _vision(
        "Swinv2",
        "ForImageClassification",
        side=32,
        image_size=32,
        patch_size=2,
        embed_dim=16,
        depths=[2, 2],
        num_heads=[2, 4],
        window_size=4,
    ),
    "convnext_v2": _vision("ConvNextV2", "ForImageClassification", hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 2, 1]),
    "segformer": _vision(
        "Segformer",
        "ForSemanticSegmentation",
        side=64,
        hidden_sizes=[8, 16, 24, 32],
        depths=[1, 1, 1, 1],
        num_attention_heads=[1, 2, 2, 4],
        decoder_hidden_size=16,
    ),
    "mobilevit": _vision(
        "MobileViT",
        "ForSemanticSegmentation",
        side=64,
        image_size=64,
        hidden_sizes=[16, 20, 24],
        neck_hidden_sizes=[8, 8, 12, 16, 16, 20, 24],
        aspp_out_channels=16,
        num_attention_heads=4,
    ),
    "yolos": _vision(
        "Yolos",
        "ForObjectDetection",
        **{**VISION, "image_size": [32, 32]},
        num_detection_tokens=5,
        use_mid_position_embeddings=False,
    ),
    "dpt": _vision(
        "DPT",
        "ForDepthEstimation",
        **{**VISION, "num_hidden_layers": 4},
        backbone_out_indices=[0, 1, 2, 3],
        neck_hidden_sizes=[8, 12, 16, 20],
        fusion_hidden_size=16,
        is_hybrid=False,
    ),
    "depth_anything": _vision(
        "DepthAnything",
        "ForDepthEstimation",
        backbone_config={
            "model_type": "dinov2",
            **VISION,
            "num_hidden_layers": 4,
            "out_indices": [1, 2, 3, 4],
            "reshape_hidden_states": False,
            "apply_layernorm": True,
        },
        patch_size=8,
        reassemble_hidden_size=32,
        neck_hidden_sizes=[8, 12, 16, 20],
        fusion_hidden_size=16,
        head_hidden_size=8,
    ),
    "regnet": _vision(
        "RegNet",
        "ForImageClassification",
        side=64,
        embedding_size=16,
        hidden_sizes=[16, 24, 32, 48],
        depths=[1, 1, 1, 1],
        groups_width=8,
    ),
    "poolformer": _vision(
        "PoolFormer", "ForImageClassification", side=64, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]
    ),
    "glpn": _vision(
        "GLPN",
        "ForDepthEstimation",
        side=64,
        hidden_sizes=[8, 16, 24, 32],
        depths=[1, 1, 1, 1],
        num_attention_heads=[1, 2, 2, 4],
        decoder_hidden_size=16,
    ),
    "swin2sr": _vision(
        "Swin2SR",
        "ForImageSuperResolution",
        side=16,
        image_size=16,
        embed_dim=16,
        depths=[2],
        num_heads=[2],
        window_size=4,
        upscale=2,
    ),
    # text with pictures, time series, decisions
    "clip": ModelCase(
        _model("CLIPModel", "CLIPConfig", **TOWERS, projection_dim=16),
        _pictured_text,
        {"input_ids": {0: "B"}, "pixel_values": {0: "C"}},
    ),
    "siglip": ModelCase(
        _model("SiglipModel", "SiglipConfig", **TOWERS),
        _pictured_text,
        {"input_ids": {0: "B"}, "pixel_values": {0: "C"}},
    ),
    "patchtst": ModelCase(
        _model(
            "PatchTSTForPrediction",
            "PatchTSTConfig",
            context_length=32,
            patch_length=4,
            patch_stride=4,
            num_input_channels=3,
            d_model=16,
            num_hidden_layers=2,
            num_attention_heads=4,
            ffn_dim=24,
            prediction_length=6,
            loss="mse",
        ),
        lambda: {"past_values": torch.randn(2, 32, 3)},
        {"past_values": {0: "B"}},
    ),
    "patchtsmixer": ModelCase(
        _model(
            "PatchTSMixerForPrediction",
            "PatchTSMixerConfig",
            context_length=32,
            patch_length=4,
            patch_stride=4,
            num_input_channels=3,
            d_model=8,
            num_layers=2,
            prediction_length=6,
        ),
        lambda: {"past_values": torch.randn(2, 32, 3)},
        {"past_values": {0: "B"}},
    ),
    "perceiver": ModelCase(
        _model(
            "PerceiverModel",
            "PerceiverConfig",
            num_latents=6,
            d_latents=16,
            d_model=20,
            num_self_attends_per_block=2,
            num_self_attention_heads=4,
            num_cross_attention_heads=4,
        ),
        lambda: {"inputs": torch.randn(2, 11, 20)},
        {"inputs": {0: "B"}},
    ),
}
