"""Linear attention of transformers by the gated delta rule, for targets that have an operator for it.

The functions for a token after others and for several tokens become the same calls, so that one program is right for
both. The convolution stays PyTorch's, which takes less time in the engine than the engine's own operator.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor, nn

from t2n_core.rewriter.builtin.marks import builtin_function
from t2n_core.rewriter.context import RewriteContext
from t2n_core.torch_graph.custom_ops import delta_rule as _declared  # noqa: F401  the operator lives there

OPERATOR: Final = "tract_transformers_gdn_recurrent"
"""The operator of a target that computes a sequence in one call."""
MODULES: Final = tuple(
    f"transformers.models.{model}.modeling_{model}"
    for model in ("qwen3_next", "qwen3_5", "qwen3_5_moe", "qwen4_exp", "olmo_hybrid")
)
"""The modules of transformers with a copy of the functions."""
STATES: Final = 2
"""The tensors that a layer keeps: the last inputs of the convolution, and the state of the rule."""


def count_layers(model: nn.Module) -> int:
    """Return the number of layers of a model that call these functions."""
    kinds = [type(module) for module in model.modules()]
    return sum(kind.__module__ in MODULES and kind.__name__.endswith("GatedDeltaNet") for kind in kinds)


def _convolution_after(module: str) -> Callable[..., Tensor]:
    """Return a function that convolves tokens after a state by the module's function for a sequence."""

    def convolve(
        ctx: RewriteContext, hidden_states: Tensor, conv_state: Tensor, weight: Tensor, *args: Any, **options: Any
    ) -> Tensor:
        if not ctx.has_operator(OPERATOR):
            plain: Tensor = ctx.original(hidden_states, conv_state, weight, *args, **options)
            return plain
        joined = torch.cat([conv_state, hidden_states], dim=-1)
        conv_state.copy_(joined[..., -conv_state.shape[-1] :])
        output: Tensor = importlib.import_module(module).causal_conv1d_fn(joined, weight, *args, **options)
        return output[:, :, -hidden_states.shape[-1] :]

    return convolve


def _rule(
    ctx: RewriteContext, query: Tensor, key: Tensor, value: Tensor, g: Tensor, beta: Tensor, **options: Any
) -> tuple[Tensor, Tensor | None]:
    """Apply the gated delta rule to tokens after a state, or to the first ones."""
    is_plain = options.get("use_qk_l2norm_in_kernel") and options.get("cu_seqlens") is None
    if not is_plain or key.shape[-1] != value.shape[-1] or not ctx.has_operator(OPERATOR):
        fallback: tuple[Tensor, Tensor | None] = ctx.original(query, key, value, g, beta, **options)
        return fallback
    before = options.get("initial_state")
    results, last = torch.ops.t2n_recurrent.gated_delta_rule(query, key, value, g, beta, before)
    return results, last if options.get("output_final_state") else None


REWRITERS: Final = tuple(
    builtin_function(f"{module}:{name}")(replacement)
    for module in MODULES
    for name, replacement in {
        "causal_conv1d_update": _convolution_after(module),
        "torch_chunk_gated_delta_rule": _rule,
        "torch_recurrent_gated_delta_rule": _rule,
    }.items()
)
"""One for each function of each module."""
