"""Mixtures of experts."""

from __future__ import annotations

import numpy as np

from t2n_core.dialect.arrays import Array
from t2n_core.dialect.meaning.tract.activation import clamped_swiglu, gelu_approx, sigmoid, silu
from t2n_core.dialect.meaning.tract.reduction import softmax
from t2n_core.dialect.registry import defines
from t2n_core.errors import SpecError


def _gate_weights(logits: Array, chosen: Array, gate: str) -> Array:
    """Return the weights of the chosen experts of each token."""
    picked = np.take_along_axis(logits, chosen, axis=1)
    match gate:
        case "raw":
            return picked
        case "sigmoid":
            return sigmoid(picked)
        case "softmax_topk":
            return softmax(picked, [1])
        case "softmax_all":
            return np.take_along_axis(softmax(logits, [1]), chosen, axis=1)
        case _:
            raise SpecError(f"no gate is called {gate!r}", op="tract_moe_ffn")


def _activate(hidden: Array, activation: str, gated: bool) -> Array:
    match activation:
        case "silu":
            return silu(hidden)
        case "swiglu" if gated:
            return silu(hidden)
        case "gelu":
            return gelu_approx(hidden)
        case "relu":
            return np.maximum(hidden, 0.0)
        case _:
            raise SpecError(f"no activation is called {activation!r}", op="tract_moe_ffn")


@defines("tract_moe_ffn")
def moe_ffn(
    x: Array,
    wg: Array,
    w1: Array,
    w2: Array,
    w3: Array | None = None,
    wg_bias: Array | None = None,
    w1_bias: Array | None = None,
    w3_bias: Array | None = None,
    w2_bias: Array | None = None,
    *,
    k: int,
    activation: str,
    gate: str,
    act_alpha: float | None = None,
    act_limit: float | None = None,
    expert_layout: str = "canonical",
) -> Array:
    """Return the weighted sum of the k experts that a router chooses for each token.

    Formula: the logits are x wg' + wg_bias; the k greatest are chosen, of equal ones the lower expert. Their weights:
    `softmax_topk` the softmax of the chosen logits, `softmax_all` the chosen ones of the softmax of all, `sigmoid` the
    sigmoid of each, `raw` the logits. An expert is act(x w1 + w1_bias) * (x w3 + w3_bias) times w2, plus w2_bias,
    without the second factor where w3 is missing; act is `silu`, `swiglu` (the same, which needs w3), `gelu` (the tanh
    form) or `relu`. With `act_limit` it is `tract_core_clamped_swiglu` of both, alpha 1 unless `act_alpha` says more.
    Shapes: x [T, D] or [B, S, D]; wg [E, D]; `canonical`: w1, w3 [E, D, H], w2 [E, H, D]; `linear`: each transposed;
    biases [E], [E, H], [E, H], [E, D].
    Source: the documentation in tract transformers/src/ops/moe_ffn.rs.
    """
    tokens = x.reshape(-1, x.shape[-1])
    if expert_layout == "linear":
        w1, w2 = np.swapaxes(w1, 1, 2), np.swapaxes(w2, 1, 2)
        w3 = None if w3 is None else np.swapaxes(w3, 1, 2)
    logits = tokens @ wg.T + (0.0 if wg_bias is None else wg_bias.ravel())
    chosen = np.argsort(-logits, axis=1, kind="stable")[:, :k]
    weights = _gate_weights(logits, chosen, gate)
    output = np.zeros_like(tokens)
    for token in range(tokens.shape[0]):
        for expert, weight in zip(chosen[token], weights[token], strict=True):
            first = tokens[token] @ w1[expert] + (0.0 if w1_bias is None else w1_bias[expert])
            second = None
            if w3 is not None:
                second = tokens[token] @ w3[expert] + (0.0 if w3_bias is None else w3_bias[expert])
            if act_limit is not None:
                if second is None:
                    raise SpecError("`act_limit` needs `w3`", op="tract_moe_ffn")
                inner = clamped_swiglu(first, second, 1.0 if act_alpha is None else act_alpha, act_limit)
            else:
                inner = _activate(first, activation, second is not None) * (1.0 if second is None else second)
            output[token] += weight * (inner @ w2[expert] + (0.0 if w2_bias is None else w2_bias[expert]))
    return output.reshape(x.shape)
