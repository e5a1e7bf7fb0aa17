"""State-space models, linear attention, and hybrids with layers of attention."""

from __future__ import annotations

from typing import Any

from conformance.cases.generative.case import TEXT, VOCABULARY, case_of

_MAMBA: dict[str, Any] = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8}
_HYBRID = ["linear_attention", "linear_attention", "linear_attention", "full_attention"]


CASES = {
    "mamba": case_of("Mamba", spread=2.0, **_MAMBA),
    "falcon-mamba": case_of("FalconMamba", **_MAMBA),
    "mamba2": case_of("Mamba2", **_MAMBA, num_heads=8, head_dim=8, n_groups=2, chunk_size=8),
    "qwen3-next": case_of(
        "Qwen3Next", **{**TEXT, "num_hidden_layers": 4}, head_dim=8, linear_num_value_heads=4, linear_num_key_heads=2,
        linear_key_head_dim=8, linear_value_head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16,
        shared_expert_intermediate_size=16, layer_types=_HYBRID,
    ),
    "lfm2": case_of("Lfm2", **TEXT, layer_types=["conv", "full_attention"], block_multiple_of=8),
    "falcon-h1": case_of(
        "FalconH1", **TEXT, mamba_d_ssm=64, mamba_n_heads=8, mamba_d_head=8, mamba_n_groups=2, mamba_d_state=8,
        mamba_chunk_size=8,
    ),
    "bamba": case_of(
        "Bamba", spread=1.5, **TEXT, attn_layer_indices=[1], mamba_n_heads=8, mamba_d_head=8, mamba_n_groups=2,
        mamba_d_state=8, mamba_chunk_size=8,
    ),
}  # fmt: skip
"""By name."""
