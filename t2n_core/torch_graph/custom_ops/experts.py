"""Experts of a mixture as one operator each: as a model calls them, and with the router that picks them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor

from t2n_core.torch_graph.custom_ops.definition import define

library = torch.library.Library("t2n_experts", "DEF")  # type: ignore[no-untyped-call]
"""The operators, for tokens [N, D], E experts of H hidden features, and k experts for each token:

experts  the sum of the outputs of the experts `top_k_index` [N, k], times `top_k_weights` [N, k]
routed   the same for the k experts with the largest logits of a linear router, with weights by `gate`

`up_proj` is [E, H, D] of each expert's linear layer, [E, D, H] if `is_transposed`, with twice as many features if a
gate comes before them or between them; `down_proj` is [E, D, H], or [E, H, D].
"""
LIBRARY: Final = "transformers.integrations.moe"
"""The module with the functions for experts."""
_LAYERS: Final = "Tensor up_proj, Tensor? up_bias, Tensor down_proj, Tensor? down_bias"
_FORM: Final = "str activation, bool has_gate, float? alpha, float? limit, bool is_transposed, bool is_grouped"
"""How an expert computes. With a `limit` it is the gate of gpt-oss, whose features and gates alternate."""
_ACTIVATIONS: Final[dict[str, Callable[[Tensor], Tensor]]] = {
    "silu": F.silu,
    "relu": F.relu,
    "erf": F.gelu,
    "gelu": lambda x: F.gelu(x, approximate="tanh"),
}
"""The activations of an expert, by the names of tract, and the gelu that it lacks."""


def _clamped_gate(gate_up: Tensor, alpha: float, limit: float) -> Tensor:
    """Return (up + 1) · gate · sigmoid(alpha · gate), with both clamped, of features that alternate."""
    gate, up = gate_up[..., ::2], gate_up[..., 1::2]
    gate = gate.clamp(min=None, max=limit)
    up = up.clamp(min=-limit, max=limit)
    glu = gate * torch.sigmoid(gate * alpha)
    return (up + 1) * glu


def experts(
    hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor, up_proj: Tensor, up_bias: Tensor | None,
    down_proj: Tensor, down_bias: Tensor | None, activation: str, has_gate: bool, alpha: float | None,
    limit: float | None, is_transposed: bool, is_grouped: bool,
) -> Tensor:  # fmt: skip
    """Compute the experts by the function of transformers that the model would call."""
    act = _ACTIVATIONS[activation]

    def apply_gate(gate_up: Tensor) -> Tensor:
        if limit is not None:
            return _clamped_gate(gate_up, 1.0 if alpha is None else alpha, limit)
        gate, up = gate_up.chunk(2, dim=-1)
        gated: Tensor = act(gate) * up
        return gated

    up = "gate_up_proj" if has_gate else "up_proj"
    module = SimpleNamespace(
        num_experts=up_proj.shape[0], has_gate=has_gate, has_bias=up_bias is not None, is_transposed=is_transposed,
        has_post_expert_norm=False, _is_expert_parallel=False, act_fn=act, _apply_gate=apply_gate,
        down_proj=down_proj, down_proj_bias=down_bias, **{up: up_proj, f"{up}_bias": up_bias},
    )  # fmt: skip
    kind = "grouped" if is_grouped else "batched"
    forward = getattr(importlib.import_module(LIBRARY), f"{kind}_mm_experts_forward")
    output: Tensor = forward(module, hidden_states, top_k_index, top_k_weights)
    return output


def _compute(*arguments: Any) -> Tensor:
    call: Any = experts
    output: Tensor = call(*arguments[:12], False)  # rows sorted by expert need strides of 16 bytes in PyTorch's kernel
    return output


define(
    library,
    f"experts(Tensor hidden_states, Tensor top_k_index, Tensor top_k_weights, {_LAYERS}, {_FORM}) -> Tensor",
    lambda hidden_states, *rest: torch.empty_like(hidden_states),
    _compute,
)
define(
    library,
    f"routed(Tensor hidden_states, Tensor router, Tensor? router_bias, int k, str gate, {_LAYERS}, {_FORM}) -> Tensor",
    lambda hidden_states, *rest: torch.empty_like(hidden_states),
)
