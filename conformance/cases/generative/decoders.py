"""Decoders with a cache of keys and values: heads in groups, windows, experts, ALiBi, learned positions."""

from __future__ import annotations

from typing import Any

from conformance.cases.generative.case import TEXT, VOCABULARY, WINDOW, case_of, without

_GPT: dict[str, Any] = {"vocab_size": VOCABULARY, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}

CASES = {
    # rotary positions, heads in groups
    "llama": case_of("Llama", **TEXT),
    "llama-tied": case_of("Llama", **TEXT, tie_word_embeddings=True),
    "qwen2": case_of("Qwen2", **TEXT),
    "qwen3": case_of("Qwen3", **TEXT, head_dim=8),
    "phi": case_of("Phi", **TEXT),
    "phi3": case_of("Phi3", **TEXT),
    "gemma": case_of("Gemma", **TEXT, head_dim=8),
    "stablelm": case_of("StableLm", **TEXT),
    "olmo2": case_of("Olmo2", **TEXT),
    "granite": case_of("Granite", **TEXT),
    "cohere": case_of("Cohere", **TEXT),
    "smollm3": case_of("SmolLM3", **TEXT),
    "nemotron": case_of("Nemotron", **TEXT),
    "glm": case_of("Glm", **TEXT, head_dim=8),
    "gpt-neox": case_of("GPTNeoX", **without("num_key_value_heads"), rotary_pct=0.5),
    "gptj": case_of("GPTJ", **_GPT, n_embd=32, n_layer=2, n_head=4, rotary_dim=4, n_positions=128),
    # windows, alone and mixed with layers that see everything
    "mistral-window": case_of("Mistral", **TEXT, sliding_window=WINDOW),
    "gemma2-window": case_of("Gemma2", **TEXT, head_dim=8, sliding_window=WINDOW),
    "gemma3-window": case_of(
        "Gemma3", config="Gemma3TextConfig", **TEXT, head_dim=8, sliding_window=WINDOW,
        layer_types=["sliding_attention", "full_attention"],
    ),
    "starcoder2-window": case_of("Starcoder2", spread=9.0, **TEXT, sliding_window=WINDOW),
    "cohere2-window": case_of(
        "Cohere2", **TEXT, sliding_window=WINDOW, layer_types=["sliding_attention", "full_attention"],
    ),
    # experts
    "mixtral": case_of("Mixtral", **TEXT, num_local_experts=4),
    "qwen2-moe": case_of(
        "Qwen2Moe", **TEXT, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16,
        shared_expert_intermediate_size=24,
    ),
    "olmoe": case_of("Olmoe", **TEXT, num_experts=4, num_experts_per_tok=2),
    "gpt-oss-window": case_of(
        "GptOss", **TEXT, head_dim=8, num_local_experts=4, num_experts_per_tok=2, sliding_window=WINDOW,
    ),
    # ALiBi
    "bloom-alibi": case_of("Bloom", **_GPT, hidden_size=32, n_layer=2, n_head=4),
    "mpt-alibi": case_of("Mpt", **_GPT, d_model=32, n_layers=2, n_heads=4, max_seq_len=128),
    "falcon": case_of("Falcon", **without("intermediate_size", "num_key_value_heads"), multi_query=True),
    # learned positions
    "gpt2": case_of("GPT2", head="LMHeadModel", **_GPT, n_embd=32, n_layer=2, n_head=4, n_positions=128),
    "gpt-bigcode": case_of("GPTBigCode", **_GPT, n_embd=32, n_layer=2, n_head=4, n_positions=128),
    "opt": case_of("OPT", **without("intermediate_size", "num_key_value_heads"), ffn_dim=48, word_embed_proj_dim=32),
    "biogpt": case_of("BioGpt", **without("num_key_value_heads")),
}  # fmt: skip
"""By name."""
