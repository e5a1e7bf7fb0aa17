"""State-space models, linear attention, and hybrids with layers of attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import transformers as hf

from conformance.cases.generative.case import TEXT, VOCABULARY, GenerativeCase

_MAMBA: dict[str, Any] = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8}
_HYBRID = ["linear_attention", "linear_attention", "linear_attention", "full_attention"]


def _case(name: str, config: Callable[[], Any], **more: Any) -> GenerativeCase:
    return GenerativeCase(lambda: getattr(hf, f"{name}ForCausalLM")(config()), **more)


CASES = {
    "mamba": _case("Mamba", lambda: hf.MambaConfig(**_MAMBA), spread=2.0),
    "falcon-mamba": _case("FalconMamba", lambda: hf.FalconMambaConfig(**_MAMBA)),
    "mamba2": _case(
        "Mamba2", lambda: hf.Mamba2Config(**_MAMBA, num_heads=8, head_dim=8, n_groups=2, chunk_size=8)
    ),
    "qwen3-next": _case(
        "Qwen3Next",
        lambda: hf.Qwen3NextConfig(
            **{**TEXT, "num_hidden_layers": 4}, head_dim=8, linear_num_value_heads=4, linear_num_key_heads=2,
            linear_key_head_dim=8, linear_value_head_dim=8, num_experts=4, num_experts_per_tok=2,
            moe_intermediate_size=16, shared_expert_intermediate_size=16, layer_types=_HYBRID,
        ),
    ),
    "lfm2": _case("Lfm2", lambda: hf.Lfm2Config(**TEXT, layer_types=["conv", "full_attention"], block_multiple_of=8)),
    "falcon-h1": _case(
        "FalconH1",
        lambda: hf.FalconH1Config(
            **TEXT, mamba_d_ssm=64, mamba_n_heads=8, mamba_d_head=8, mamba_n_groups=2, mamba_d_state=8,
            mamba_chunk_size=8,
        ),
    ),
    "bamba": _case(
        "Bamba",
        lambda: hf.BambaConfig(
            **TEXT, attn_layer_indices=[1], mamba_n_heads=8, mamba_d_head=8, mamba_n_groups=2, mamba_d_state=8,
            mamba_chunk_size=8,
        ),
        spread=1.5,
    ),
}  # fmt: skip
"""By name."""
