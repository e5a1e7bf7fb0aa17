"""Language models from transformers' registry that lack a separate case, made small by their configurations.

Sizes with known names in a configuration are replaced by small ones; a family that needs other sizes is listed with
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import transformers as hf
from torch import nn
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from conformance.cases.models.case import ModelCase, tokens
from conformance.cases.models.transformers.decoders import STEPS
from conformance.cases.models.transformers.presets import TEXT, WORDS

HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
WIDTHS = ("hidden_size", "d_model", "n_embd", "dim", "embedding_size", "lru_width")
SMALL: Mapping[str, Any] = {
    **dict.fromkeys(WIDTHS, 32),
    **dict.fromkeys(HEADS, 4),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers"), 2),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "ffn_hidden_size", "ffn_intermediate_size"), 48),
    **dict.fromkeys(("moe_intermediate_size", "expert_ffn_hidden_size"), 16),
    **dict.fromkeys(("max_position_embeddings", "n_positions"), 64),
    **dict.fromkeys(("vocab_size", "vocab_size_per_layer_input"), WORDS),
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "use_cache": False,
    # attention
    "num_key_value_heads": 2,
    "head_dim": 8,
    "global_head_dim": 8,
    "kv_channels": 8,
    "sliding_window": 4,
    "attention_window_size": 8,
    "local_attention": 4,
    "block_size": 8,
    "q_lora_rank": 12,
    "kv_lora_rank": 8,
    "qk_rope_head_dim": 4,
    "qk_nope_head_dim": 4,
    "v_head_dim": 8,
    "index_n_heads": 2,
    "index_head_dim": 8,
    "index_topk": 4,
    # experts
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "moe_topk": 2,
    "n_group": 2,
    "topk_group": 1,
    "first_k_dense_replace": 1,
    "dense_intermediate_size": 48,
    "num_shared_experts": 1,
    "n_shared_experts": 1,
    "shared_expert_intermediate_size": 24,
    # state spaces and linear attention
    "mamba_d_state": 6,
    "mamba_n_heads": 4,
    "mamba_d_head": 16,
    "mamba_n_groups": 1,
    "mamba_chunk_size": 4,
    "state_size": 6,
    "ssm_state_size": 6,
    "mamba_num_heads": 4,
    "mamba_head_dim": 8,
    "n_groups": 1,
    "chunk_size": 4,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "linear_num_heads": 4,
    "linear_head_dim": 8,
    # layers of Gemma 3n
    "hidden_size_per_layer_input": 8,
    "laurel_rank": 8,
    "altup_num_inputs": 2,
    "num_kv_shared_layers": 0,
}
"""Small sizes by the names that configurations have for them."""


def small_config(family: str, **sizes: Any) -> Any:
    """Return a configuration of a family with small sizes, and a layer of each of its kinds."""
    kind = CONFIG_MAPPING[family]
    large = kind()
    chosen = {name: size for name, size in SMALL.items() if _is_size(large, name)} | sizes
    layers = chosen.get("num_hidden_layers", 2)
    kinds = list(dict.fromkeys(getattr(large, "layer_types", None) or ()))
    if kinds and "layer_types" not in sizes:
        layers = max(layers, len(kinds))
        chosen |= {"layer_types": (kinds * layers)[:layers], "num_hidden_layers": layers}
    for name, value in vars(large).items():
        if name not in chosen and isinstance(value, list | tuple) and len(value) == large.num_hidden_layers:
            chosen[name] = list(value[:layers])
    return kind(**{name: value for name, value in chosen.items() if not _is_computed(kind, name)})


def _is_size(config: Any, name: str) -> bool:
    return hasattr(config, name) and not isinstance(getattr(config, name), list | dict)


def _is_computed(kind: type, name: str) -> bool:
    return isinstance(getattr(kind, name, None), property)


class Logits(nn.Module):
    """The logits of a language model without its cache."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.model(input_ids=input_ids, use_cache=False).logits
        return logits


def case_of_family(family: str, axes: Any = TEXT, **sizes: Any) -> ModelCase:
    """Return the case of a family; `sizes` override, or add to, its small sizes."""

    def make() -> nn.Module:
        return Logits(getattr(hf, MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[family])(small_config(family, **sizes)))

    return ModelCase(make, tokens(WORDS, 2, 9), axes)


PLAIN = """
afmoe apertus arcee bitnet cohere2 cohere2_moe cwm diffllama doge dots1 ernie4_5 ernie4_5_moe exaone4 exaone_moe
flex_olmo flint gemma3n_text glm glm4 glm4_moe gpt_oss granite granite_swa granitemoe granitemoe_swa
granitemoeshared helium hrm_text hunyuan_v1_dense hunyuan_v1_moe hy_v3 hy_v4 internlm3 iquestcoder jais2
kolibri1 laguna lfm2 lfm3 llama4_text mellum mimo_v2_flash minimax minimax_m2 ministral ministral3
modernbert-decoder nanochat nemotron olmo3 olmo_hybrid olmoe phimoe qwen3_5_moe_text qwen3_5_text qwen3_moe qwen3_next
seed_oss solar_open starcoder2 vaultgemma xlstm
""".split()
LATENT = """
axk1 bailing_hybrid deepseek_v2 deepseek_v32 glm4_moe_lite glm_moe_dsa kimi_linear longcat_flash minicpm3 youtu
""".split()
"""Families with latent attention, whose keys and values have as many heads as the queries."""
IN_STEPS = "falcon_mamba jamba".split()
"""Families with a loop over time in Python, which is unrolled: their length is fixed."""
REFUSED = "deepseek_v4 jetmoe".split()
OF_LATENT = {"num_key_value_heads": 4, "head_dim": 4}

CASES = {
    **{family: case_of_family(family) for family in [*PLAIN, *REFUSED]},
    **{family: case_of_family(family, **OF_LATENT) for family in LATENT},
    **{family: case_of_family(family, axes=STEPS) for family in IN_STEPS},
}
