"""The gated delta rule of linear attention over a sequence, as one operator."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from t2n_core.torch_graph.custom_ops.definition import define

library = torch.library.Library("t2n_recurrent", "DEF")  # type: ignore[no-untyped-call]
"""The operator:

gated_delta_rule  (results [b, S, hv, v], last state [b, hv, k, v]) of query and key [b, S, hk, k], value [b, S, hv, v],
                  log_decay and beta [b, S, hv] and a state before them, zeros without one. Query and key are made unit
                  vectors, and the query is divided by √k; each of the hk heads serves hv / hk heads of the value in
                  turn. All is computed in float32.
"""
_EPSILON: Final = 1e-6
"""The addend to the square of a vector's length."""


def _unit(vectors: Tensor, groups: int) -> Tensor:
    """Return unit vectors in float32, [b, heads, S, w], with each head as often as it serves one of the value."""
    wide = vectors.float().transpose(1, 2)
    return (wide * (wide.square().sum(-1, keepdim=True) + _EPSILON).rsqrt()).repeat_interleave(groups, dim=1)


def _gated_delta_rule(
    query: Tensor, key: Tensor, value: Tensor, log_decay: Tensor, beta: Tensor, state: Tensor | None
) -> tuple[Tensor, Tensor]:
    groups = value.shape[2] // key.shape[2]
    queries, keys = _unit(query, groups) * key.shape[-1] ** -0.5, _unit(key, groups)
    last = torch.zeros(keys.shape[0], keys.shape[1], keys.shape[3], value.shape[3]) if state is None else state.float()
    results = torch.empty(value.shape)
    for at in range(query.shape[1]):
        k = keys[:, :, at].unsqueeze(-1)
        last = last * log_decay[:, at].float().exp()[..., None, None]
        missed = (value[:, at].float() - (last * k).sum(-2)) * beta[:, at].float().unsqueeze(-1)
        last = last + k * missed.unsqueeze(-2)
        results[:, at] = (last * queries[:, :, at].unsqueeze(-1)).sum(-2)
    return results.to(query.dtype), last.clone()


def _shapes(
    query: Tensor, key: Tensor, value: Tensor, log_decay: Tensor, beta: Tensor, state: Tensor | None
) -> tuple[Tensor, Tensor]:
    last = value.new_empty((value.shape[0], value.shape[2], key.shape[3], value.shape[3]), dtype=torch.float32)
    return value.new_empty(value.shape, dtype=query.dtype), last


define(
    library,
    "gated_delta_rule(Tensor query, Tensor key, Tensor value, Tensor log_decay, Tensor beta, Tensor? state) "
    "-> (Tensor, Tensor)",
    _shapes,
    _gated_delta_rule,
)
