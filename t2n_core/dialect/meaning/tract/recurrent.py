"""Cells of recurrent networks, whole recurrences, and the recurrences of linear attention."""

from __future__ import annotations

import math

import numpy as np

from t2n_core.dialect.arrays import Array
from t2n_core.dialect.meaning.tract.activation import sigmoid, silu
from t2n_core.dialect.registry import defines
from t2n_core.errors import SpecError


@defines("tract_core_lstm_epilogue")
def lstm_epilogue(preact: Array, c_prev: Array, hidden: int) -> tuple[Array, Array]:
    """Return the hidden and the cell state of an LSTM from the sums that enter its gates.

    Formula: c = sigmoid(f) * c_prev + sigmoid(i) * tanh(g), h = sigmoid(o) * tanh(c), where `preact` holds i, o, f, g
    one after the other along its last axis. Shapes: preact [.., 4 hidden], c_prev and both results [.., hidden].
    Source: ONNX LSTM-14 (order of the gates); tract core/src/ops/lstm_cell.rs.
    """
    i, o, f, g = (preact[..., at * hidden : (at + 1) * hidden] for at in range(4))
    cell = sigmoid(f) * c_prev + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(cell), cell


@defines("tract_core_gru_epilogue")
def gru_epilogue(xh: Array, rh: Array, h_prev: Array, hidden: int) -> Array:
    """Return the hidden state of a GRU from the products that enter its gates.

    Formula: z = sigmoid(xh_z + rh_z), r = sigmoid(xh_r + rh_r), n = tanh(xh_n + r * rh_n), h = n + z * (h_prev - n);
    `xh` and `rh` hold z, r, n one after the other along their last axis. Shapes: xh and rh [.., 3 hidden], h_prev and
    the result [.., hidden].
    Source: ONNX GRU-14 with linear_before_reset = 1; tract core/src/ops/gru_cell.rs.
    """
    x_z, x_r, x_n = (xh[..., at * hidden : (at + 1) * hidden] for at in range(3))
    r_z, r_r, r_n = (rh[..., at * hidden : (at + 1) * hidden] for at in range(3))
    update, reset = sigmoid(x_z + r_z), sigmoid(x_r + r_r)
    new = np.tanh(x_n + reset * r_n)
    return np.asarray(new + update * (h_prev - new))


@defines("tract_core_gru_seq")
def gru_seq(
    x: Array,
    w: Array | float = 0.0,
    r: Array | None = None,
    b: Array | float = 0.0,
    initial_h: Array | None = None,
    *,
    hidden: int,
    chunk: int,
    has_bias: int = 0,
    reset_every_turn: int = 0,
    emit_y: int = 1,
    projected: int = 0,
) -> tuple[Array, Array]:
    """Return the hidden states of a GRU over a whole sequence, and the last one.

    Formula: h[t] is `tract_core_gru_epilogue` of x[t] W' + b_w and h[t - 1] R' + b_r; from the last step to the first
    where `chunk` is negative. With `projected`, x is already x W' + b_w. Shapes: x [batch, T, in] or [batch, T,
    3 hidden], w [3 hidden, in], r [3 hidden, hidden], b [6 hidden] or [1, 6 hidden] (b_w, then b_r; only with
    `has_bias`), initial_h [batch, 1, hidden]; results [batch, T, hidden], or [batch, 0, hidden] without `emit_y`, and
    [batch, 1, hidden]. This is the first call of a session: a later one begins with the last h, unless
    `reset_every_turn`.
    Source: ONNX GRU-14 with linear_before_reset = 1; tract core/src/ops/gru_seq.rs.
    """
    if r is None or initial_h is None:
        raise SpecError("`r` and `initial_h` are needed", op="tract_core_gru_seq")
    biases = np.asarray(b, dtype=np.float64).ravel() if has_bias else np.zeros(6 * hidden)
    enter = x if projected else x @ np.asarray(w).T + biases[: 3 * hidden]
    state = initial_h.reshape(x.shape[0], hidden)
    steps = range(x.shape[1] - 1, -1, -1) if chunk < 0 else range(x.shape[1])
    output = np.zeros([x.shape[0], x.shape[1], hidden])
    for at in steps:
        state = gru_epilogue(enter[:, at], state @ r.T + biases[3 * hidden :], state, hidden)
        output[:, at] = state
    return output if emit_y else output[:, :0], state[:, None]


@defines("tract_transformers_causal_conv1d_update", "tract_qwen35_causal_conv1d_update", result="same initial_state")
def causal_conv1d_update(input: Array, weight: Array, initial_state: Array) -> tuple[Array, Array]:
    """Return the SiLU of a causal convolution of each channel by itself, and the last inputs.

    Formula: with f = initial_state followed by input, out[t] = silu(sum over j < k of weight[j] * f[t + 1 + j]); the
    final state is the last k elements of f. Shapes: input [b, C, S], weight [C, k] or [C, 1, k], states [b, C, k].
    Domain: float32, or float16, everywhere.
    Source: transformers' torch_causal_conv1d_update (Qwen3-Next); tract transformers/src/ops/causal_conv1d_update.rs.
    """
    width, length = weight.shape[-1], input.shape[2]
    kernel = weight.reshape(input.shape[1], width)
    joined = np.concatenate([initial_state, input], axis=2)
    windows = np.lib.stride_tricks.sliding_window_view(joined[:, :, 1:], width, axis=2)[:, :, :length]
    return silu(np.einsum("bcsk,ck->bcs", windows, kernel)), joined[:, :, length : length + width].copy()


@defines("tract_transformers_gdn_recurrent", "tract_qwen35_gdn_recurrent", result="same initial_state")
def gdn_recurrent(
    query: Array, key: Array, value: Array, log_decay: Array, beta: Array, initial_state: Array
) -> tuple[Array, Array]:
    """Return the results of a gated delta rule over a sequence, and its last state.

    Formula, for each head, with q = query / sqrt(|query|^2 + 1e-6) / sqrt(w), k = key / sqrt(|key|^2 + 1e-6):
    S = exp(log_decay) * S; d = beta * (value - k' S); S = S + k d'; out = q' S. Shapes: query and key [b, S, hk, w],
    value [b, S, hv, w], where each of the hk heads serves hv / hk value heads in turn, log_decay and beta [b, S, hv],
    states [b, hv, w, w] (key, then value). Domain: float32 everywhere.
    Source: transformers' torch_recurrent_gated_delta_rule (Qwen3-Next), with use_qk_l2norm_in_kernel; tract
    transformers/src/ops/gdn_recurrent.rs.
    """
    batch, length, _, width = query.shape
    heads = value.shape[2]
    groups = heads // query.shape[2]

    def unit(vectors: Array) -> Array:
        unit_vectors = vectors / np.sqrt(np.square(vectors).sum(axis=-1, keepdims=True) + 1e-6)
        return np.repeat(unit_vectors, groups, axis=2)

    q, k = unit(query) / math.sqrt(width), unit(key)
    decay = np.exp(log_decay.reshape(batch, length, heads))[..., None, None]
    gate = beta.reshape(batch, length, heads)[..., None]
    state, output = initial_state, np.zeros(value.shape)
    for at in range(length):
        state = state * decay[:, at]
        delta = gate[:, at] * (value[:, at] - np.einsum("bhr,bhrc->bhc", k[:, at], state))
        state = state + k[:, at, :, :, None] * delta[:, :, None, :]
        output[:, at] = np.einsum("bhr,bhrc->bhc", q[:, at], state)
    return output, state
