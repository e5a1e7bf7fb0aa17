"""Linear attention of transformers as operators of its own, for targets that have them.

The functions of a token after others and those of several tokens become the same calls, so that one program is right
for both.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor, nn

from t2n_core.rewriter.builtin.marks import builtin_function
from t2n_core.rewriter.context import RewriteContext
from t2n_core.torch_graph.custom_ops import delta_rule as _declared  # noqa: F401  the operators live there

OPERATORS: Final = ("tract_transformers_causal_conv1d_update", "tract_transformers_gdn_recurrent")
"""The operators of a target that compute a sequence in one call."""
MODULES: Final = tuple(
    f"transformers.models.{model}.modeling_{model}"
    for model in ("qwen3_next", "qwen3_5", "qwen3_5_moe", "qwen4_exp", "olmo_hybrid")
)
"""The modules of transformers with a copy of the functions."""
STATES: Final = 2
"""The tensors that a layer keeps: the last inputs of the convolution, and the state of the rule."""
_SILU: Final = ("silu", "swish")


def count_layers(model: nn.Module) -> int:
    """Return the number of layers of a model that call these functions."""
    kinds = [type(module) for module in model.modules()]
    return sum(kind.__module__ in MODULES and kind.__name__.endswith("GatedDeltaNet") for kind in kinds)


def _has_operators(ctx: RewriteContext) -> bool:
    return ctx.target is not None and all(map(ctx.target.spec.has, OPERATORS))


def _convolution(
    ctx: RewriteContext, hidden_states: Tensor, weight: Tensor, bias: Any = None, activation: Any = None, **options: Any
) -> Tensor:
    """Convolve a sequence without tokens before it."""
    if not _is_plain(ctx, hidden_states, weight, bias, activation) or options.get("seq_idx") is not None:
        found: Tensor = ctx.original(hidden_states, weight, bias, activation, **options)
        return found
    result: Tensor = torch.ops.t2n_recurrent.causal_silu_conv1d(hidden_states, weight)
    return result


def _convolution_of_one(
    ctx: RewriteContext, hidden_states: Tensor, conv_state: Tensor, weight: Tensor, bias: Any = None,
    activation: Any = None,
) -> Tensor:  # fmt: skip
    """Convolve a token after others, and write the last tokens into the state."""
    if not _is_plain(ctx, hidden_states, weight, bias, activation):
        found: Tensor = ctx.original(hidden_states, conv_state, weight, bias, activation)
        return found
    joined = torch.cat([conv_state, hidden_states], dim=-1)
    conv_state.copy_(joined[..., -conv_state.shape[-1] :])
    result: Tensor = torch.ops.t2n_recurrent.causal_silu_conv1d(joined, weight)
    return result[:, :, -hidden_states.shape[-1] :]


def _is_plain(ctx: RewriteContext, hidden_states: Tensor, weight: Tensor, bias: Any, activation: Any) -> bool:
    is_silu = bias is None and activation in _SILU and hidden_states.dtype == weight.dtype
    return is_silu and _has_operators(ctx)


def _rule(
    ctx: RewriteContext, query: Tensor, key: Tensor, value: Tensor, g: Tensor, beta: Tensor, **options: Any
) -> tuple[Tensor, Tensor | None]:
    """Apply the gated delta rule to tokens after a state, or to the first ones."""
    is_plain = options.get("use_qk_l2norm_in_kernel") and options.get("cu_seqlens") is None
    if not is_plain or key.shape[-1] != value.shape[-1] or not _has_operators(ctx):
        found: tuple[Tensor, Tensor | None] = ctx.original(query, key, value, g, beta, **options)
        return found
    before = options.get("initial_state")
    results, last = torch.ops.t2n_recurrent.gated_delta_rule(query, key, value, g, beta, before)
    return results, last if options.get("output_final_state") else None


REWRITERS: Final = tuple(
    builtin_function(f"{module}:{name}")(replacement)
    for module in MODULES
    for name, replacement in {
        "causal_conv1d_fn": _convolution,
        "causal_conv1d_update": _convolution_of_one,
        "torch_chunk_gated_delta_rule": _rule,
        "torch_recurrent_gated_delta_rule": _rule,
    }.items()
)
"""One for each function of each module."""
