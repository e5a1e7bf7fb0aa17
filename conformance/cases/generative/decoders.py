"""Decoders with a cache of keys and values: heads in groups, windows, experts, ALiBi, learned positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import transformers as hf

from conformance.cases.generative.case import TEXT, VOCABULARY, WINDOW, GenerativeCase, without

_GPT: dict[str, Any] = {"vocab_size": VOCABULARY, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}


def _case(name: str, config: Callable[[], Any], head: str = "ForCausalLM", **more: Any) -> GenerativeCase:
    return GenerativeCase(lambda: getattr(hf, name + head)(config()), **more)


CASES = {
    # rotary positions, heads in groups
    "llama": _case("Llama", lambda: hf.LlamaConfig(**TEXT)),
    "llama-tied": _case("Llama", lambda: hf.LlamaConfig(**TEXT, tie_word_embeddings=True)),
    "qwen2": _case("Qwen2", lambda: hf.Qwen2Config(**TEXT)),
    "qwen3": _case("Qwen3", lambda: hf.Qwen3Config(**TEXT, head_dim=8)),
    "phi": _case("Phi", lambda: hf.PhiConfig(**TEXT)),
    "phi3": _case("Phi3", lambda: hf.Phi3Config(**TEXT)),
    "gemma": _case("Gemma", lambda: hf.GemmaConfig(**TEXT, head_dim=8)),
    "stablelm": _case("StableLm", lambda: hf.StableLmConfig(**TEXT)),
    "olmo2": _case("Olmo2", lambda: hf.Olmo2Config(**TEXT)),
    "granite": _case("Granite", lambda: hf.GraniteConfig(**TEXT)),
    "cohere": _case("Cohere", lambda: hf.CohereConfig(**TEXT)),
    "smollm3": _case("SmolLM3", lambda: hf.SmolLM3Config(**TEXT)),
    "nemotron": _case("Nemotron", lambda: hf.NemotronConfig(**TEXT)),
    "glm": _case("Glm", lambda: hf.GlmConfig(**TEXT, head_dim=8)),
    "gpt-neox": _case(
        "GPTNeoX", lambda: hf.GPTNeoXConfig(**without("num_key_value_heads"), rotary_pct=0.5)
    ),
    "gptj": _case("GPTJ", lambda: hf.GPTJConfig(**_GPT, n_embd=32, n_layer=2, n_head=4, rotary_dim=4, n_positions=128)),
    # windows, alone and mixed with layers that see everything
    "mistral-window": _case("Mistral", lambda: hf.MistralConfig(**TEXT, sliding_window=WINDOW)),
    "gemma2-window": _case("Gemma2", lambda: hf.Gemma2Config(**TEXT, head_dim=8, sliding_window=WINDOW)),
    "gemma3-window": _case(
        "Gemma3",
        lambda: hf.Gemma3TextConfig(
            **TEXT, head_dim=8, sliding_window=WINDOW, layer_types=["sliding_attention", "full_attention"]
        ),
    ),
    "starcoder2-window": _case("Starcoder2", lambda: hf.Starcoder2Config(**TEXT, sliding_window=WINDOW), spread=9.0),
    "cohere2-window": _case(
        "Cohere2",
        lambda: hf.Cohere2Config(
            **TEXT, sliding_window=WINDOW, layer_types=["sliding_attention", "full_attention"]
        ),
    ),
    # experts
    "mixtral": _case("Mixtral", lambda: hf.MixtralConfig(**TEXT, num_local_experts=4)),
    "qwen2-moe": _case(
        "Qwen2Moe",
        lambda: hf.Qwen2MoeConfig(
            **TEXT, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, shared_expert_intermediate_size=24
        ),
    ),
    "olmoe": _case("Olmoe", lambda: hf.OlmoeConfig(**TEXT, num_experts=4, num_experts_per_tok=2)),
    "gpt-oss-window": _case(
        "GptOss",
        lambda: hf.GptOssConfig(
            **TEXT, head_dim=8, num_local_experts=4, num_experts_per_tok=2, sliding_window=WINDOW
        ),
    ),
    # ALiBi
    "bloom-alibi": _case("Bloom", lambda: hf.BloomConfig(**_GPT, hidden_size=32, n_layer=2, n_head=4)),
    "mpt-alibi": _case("Mpt", lambda: hf.MptConfig(**_GPT, d_model=32, n_layers=2, n_heads=4, max_seq_len=128)),
    "falcon": _case(
        "Falcon", lambda: hf.FalconConfig(**without("intermediate_size", "num_key_value_heads"), multi_query=True)
    ),
    # learned positions
    "gpt2": _case(
        "GPT2", lambda: hf.GPT2Config(**_GPT, n_embd=32, n_layer=2, n_head=4, n_positions=128), "LMHeadModel"
    ),
    "gpt-bigcode": _case(
        "GPTBigCode", lambda: hf.GPTBigCodeConfig(**_GPT, n_embd=32, n_layer=2, n_head=4, n_positions=128)
    ),
    "opt": _case(
        "OPT",
        lambda: hf.OPTConfig(
            **without("intermediate_size", "num_key_value_heads"), ffn_dim=48, word_embed_proj_dim=32
        ),
    ),
    "biogpt": _case("BioGpt", lambda: hf.BioGptConfig(**without("num_key_value_heads"))),
}  # fmt: skip
"""By name."""
