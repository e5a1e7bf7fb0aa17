"""Experts of transformers as one operator, where it supports their gate and activation."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import FunctionType
from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from t2n_core.torch_graph.custom_ops.experts import LIBRARY

_CLAMPED: Final = ("transformers.models.gpt_oss.modeling_gpt_oss", "GptOssExperts")
_IMPLEMENTATIONS: Final = {"grouped_mm_experts_forward": True, "batched_mm_experts_forward": False}
"""The library's functions that compute products of all rows, and whether rows are sorted by expert before."""
_BY_CLASS: Final = {
    "SiLU": "silu",
    "SiLUActivation": "silu",
    "ReLU": "relu",
    "GELUTanh": "gelu",
    "GELUActivation": "erf",
}
"""Classes of PyTorch and transformers -> the activation they compute."""
_BY_FUNCTION: Final = {F.silu: "silu", F.relu: "relu"}
_WEIGHTED_BEFORE: Final = ("transformers.models.llama4.modeling_llama4", "Llama4TextExperts")
"""Experts whose input is multiplied by the router's weights, and not their output."""


def notes_of_layers(model: nn.Module) -> tuple[str, ...]:
    """Return why experts of a model are no operator, once for each layer whose function is not the library's."""
    kinds = (type(module) for module in model.modules())
    ours = [kind for kind in kinds if (kind.__module__, kind.__name__) == _WEIGHTED_BEFORE]
    return ("the router weights the experts' input, not their output",) * len(ours)


def as_one_operator(forward: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls experts as one operator, or `forward` where it cannot express them."""
    is_grouped = _IMPLEMENTATIONS.get(getattr(forward, "__name__", ""))
    if is_grouped is None or getattr(forward, "__module__", "") != LIBRARY:
        return forward

    def call(module: Any, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor) -> Tensor:
        form = _form(module)
        if form is None or hidden_states.dim() != 2:
            output: Tensor = forward(module, hidden_states, top_k_index, top_k_weights)
            return output
        up = "gate_up_proj" if module.has_gate else "up_proj"
        layers = [
            getattr(module, f"{projection}{end}", None) for projection in (up, "down_proj") for end in ("", "_bias")
        ]
        output = torch.ops.t2n_experts.experts(hidden_states, top_k_index, top_k_weights, *layers, *form, is_grouped)
        return output

    return call


def _form(module: Any) -> tuple[Any, ...] | None:
    """Return activation, has_gate, alpha, limit and is_transposed of experts; None if they compute something else."""
    if module.has_post_expert_norm or module._is_expert_parallel:
        return None
    gate = getattr(type(module), "_apply_gate", None)
    if module.has_gate and _is_same(gate, _clamped_gate()):
        return "silu", True, float(module.alpha), float(module.limit), module.is_transposed
    activation = _activation(getattr(module, "act_fn", None))
    is_plain = not module.has_gate or _is_same(gate, importlib.import_module(LIBRARY)._default_apply_gate)
    return (activation, module.has_gate, None, None, module.is_transposed) if activation and is_plain else None


def _clamped_gate() -> Any:
    module, name = _CLAMPED
    return getattr(importlib.import_module(module), name)._apply_gate


def _is_same(function: Any, other: Any) -> bool:
    """Return whether two functions have the same code: the library copies classes from model to model."""
    if not (isinstance(function, FunctionType) and isinstance(other, FunctionType)):
        return False
    left, right = function.__code__, other.__code__
    return (left.co_code, left.co_consts, left.co_names) == (right.co_code, right.co_consts, right.co_names)


def _activation(act: Any) -> str:
    """Return the name of an activation; empty if the operator lacks it, such as the square of relu."""
    if isinstance(act, FunctionType):
        return _BY_FUNCTION.get(act, "")
    kind = type(act)
    is_known = isinstance(act, nn.Module) and kind.__module__.startswith(("torch.nn.", "transformers.activations"))
    return _BY_CLASS.get(kind.__name__, "") if is_known else ""
