"""Capture attention as one node whose shape follows from its arguments.

PyTorch would run its reference implementation on fake tensors to find the shape, which takes up to a third of the
capture time of a small transformer. The graph shows the aten name.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional

from t2n_core.torch_graph.compat.private import is_functorch_wrapped_tensor
from t2n_core.torch_graph.custom_ops.definition import define, library
from t2n_core.torch_graph.overrides.pools import is_same_size
from t2n_core.torch_graph.overrides.registry import override

_FLAGS = "float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False"


def _shape(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    return query.new_empty((*query.shape[:-1], value.shape[-1]))


define(
    library,
    f"scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, {_FLAGS}) -> Tensor",
    _shape,
    functional.scaled_dot_product_attention,
)


@override(functional.scaled_dot_product_attention, reason="its reference implementation would run to find a shape")
def scaled_dot_product_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """Return the attention; a scale computed from sizes becomes a factor of the queries."""
    if isinstance(scale, torch.SymFloat | torch.Tensor):  # the logarithm of a size is a tensor
        factor: Any = scale
        query, scale = query * (factor * math.sqrt(query.shape[-1])), None
    tensors = [query, key, value, *([] if attn_mask is None else [attn_mask])]
    attention: Any = functional.scaled_dot_product_attention
    if _has_known_shape(query, key, value, attn_mask, enable_gqa) and not any(map(_is_special, tensors)):
        attention = torch.ops.t2n_capture.scaled_dot_product_attention
    output: torch.Tensor = attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )
    return output


def _has_known_shape(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, grouped: bool
) -> bool:
    """Return whether no guard on sizes is needed: the arguments fit, and only a mask is broadcast, by axes of 1."""
    if not query.dim() == key.dim() == value.dim() >= 2 or (grouped and query.dim() < 4):
        return False
    heads = slice(None, -3 if grouped else -2)
    fit = (
        _are_same(query.shape[heads], key.shape[heads])
        and _are_same(key.shape[:-1], value.shape[:-1])
        and _are_same(query.shape[-1:], key.shape[-1:])
    )
    if grouped:
        counts = query.shape[-3], key.shape[-3]
        fit = fit and all(type(count) is int for count in counts) and counts[1] > 0 and counts[0] % counts[1] == 0
    if mask is None or not fit:
        return fit
    score_shape = (*query.shape[:-1], key.shape[-2])
    axes = zip(reversed(mask.shape), reversed(score_shape), strict=False)
    return mask.dim() <= len(score_shape) and all(
        (type(mask_size) is int and mask_size == 1) or is_same_size(mask_size, size) for mask_size, size in axes
    )


def _are_same(some: Any, others: Any) -> bool:
    return len(some) == len(others) and all(map(is_same_size, some, others))


def _is_special(tensor: torch.Tensor) -> bool:
    """Return whether PyTorch does more than compute a call, as in a region of autocast or under vmap."""
    return torch.is_autocast_enabled(tensor.device.type) or is_functorch_wrapped_tensor(tensor)
