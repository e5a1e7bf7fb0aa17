"""Language models of transformers: decoders, state spaces and linear attention."""

from __future__ import annotations

from typing import Any

from conformance.cases.models.case import ModelCase, tokens
from conformance.cases.models.transformers.presets import ENCODER, SIZES, TEXT, WORDS, model

DECODER = {
    **SIZES,
    "intermediate_size": 48,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
GPT = {"vocab_size": WORDS, "n_layer": 2, "n_head": 4}
GPT_NEO = {
    "vocab_size": WORDS, "hidden_size": 32, "num_layers": 2, "num_heads": 4, "max_position_embeddings": 64,
    "attention_types": [[["global", "local"], 1]], "window_size": 4,
}  # fmt: skip
EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 16}
DEEPSEEK = {
    **EXPERTS, "num_key_value_heads": 4, "head_dim": 4, "n_routed_experts": 4, "n_group": 2, "topk_group": 1,
    "first_k_dense_replace": 1, "q_lora_rank": 12, "kv_lora_rank": 8, "qk_rope_head_dim": 4, "qk_nope_head_dim": 4,
    "v_head_dim": 8,
}  # fmt: skip
STATES = {"vocab_size": WORDS, "hidden_size": 24, "state_size": 6, "num_hidden_layers": 2, "pad_token_id": 0}
RWKV = {
    "vocab_size": WORDS, "hidden_size": 32, "attention_hidden_size": 32, "num_hidden_layers": 2, "context_length": 64,
}  # fmt: skip
STEPS = {"input_ids": {0: "B"}}
"""A loop over time in Python is unrolled, so its length is fixed."""


def _decoder(family: str, config: str = "", axes: Any = TEXT, **options: Any) -> ModelCase:
    make = model(f"{family}ForCausalLM", config or f"{family}Config", **{"use_cache": False, **options})
    return ModelCase(make, tokens(WORDS, 2, 9), axes)


CASES = {
    # decoder-only language models
    "gpt2": ModelCase(
        model("GPT2LMHeadModel", "GPT2Config", **GPT, n_positions=64, n_embd=32, use_cache=False),
        tokens(WORDS, 2, 9),
        TEXT,
    ),
    "gpt_neo": _decoder("GPTNeo", **GPT_NEO),
    "gpt_neox": _decoder("GPTNeoX", **ENCODER),
    "gptj": _decoder("GPTJ", **GPT, n_positions=64, n_embd=32, rotary_dim=4),
    "opt": _decoder("OPT", **SIZES, ffn_dim=48, word_embed_proj_dim=32, max_position_embeddings=64, pad_token_id=0),
    "bloom": _decoder("Bloom", **GPT, hidden_size=32),
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
    "qwen2_moe": _decoder("Qwen2Moe", **DECODER, **EXPERTS, num_experts=4, shared_expert_intermediate_size=24),
    "deepseek_v3": _decoder("DeepseekV3", **{**DECODER, **DEEPSEEK}),
    # state space and linear attention
    "mamba": _decoder("Mamba", axes=STEPS, **STATES, time_step_rank=3, intermediate_size=48),
    "mamba2": _decoder("Mamba2", axes=STEPS, **STATES, num_heads=6, head_dim=8, n_groups=2, chunk_size=4, expand=2),
    "rwkv": _decoder("Rwkv", axes=STEPS, **RWKV),
    "recurrent_gemma": _decoder(
        "RecurrentGemma", axes=STEPS, **{**DECODER, "num_hidden_layers": 3}, lru_width=32, attention_window_size=8
    ),
}
