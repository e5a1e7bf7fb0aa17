"""Cases of normalisations, recurrences, attention and experts."""

from __future__ import annotations

from typing import Any

import numpy as np

from t2n_core.dialect.cases.draw import Draw, arguments, floating
from t2n_core.dialect.cases.recipes import recipe


@recipe("tract_core_rms_norm", "tract_transformers_rms_norm")
def _rms_norm(draw: Draw) -> dict[str, Any]:
    shape = draw.shape(draw.integer(1, 4))
    return arguments(
        input=draw.floats(shape, floating(draw)),
        axis=draw.integer(0, len(shape) - 1),
        eps=draw.turn([None, 1e-3, 1e-5]),
    )


@recipe("tract_core_scaled_rms_norm", constant=("scale",))
def _scaled_rms_norm(draw: Draw) -> dict[str, Any]:
    shape = draw.shape(draw.integer(1, 4))
    axis = draw.integer(0, len(shape) - 1)
    return arguments(
        input=draw.floats(shape, floating(draw)),
        scale=draw.floats([shape[axis]]),
        axis=axis,
        eps=draw.turn([None, 1e-3]),
        out_dt=draw.turn([None, "f32", "f16"]),
        scale_dt=draw.turn([None, "f16", None, "f32"]),
    )


@recipe("tract_onnx_lrn")
def _lrn(draw: Draw) -> dict[str, Any]:
    return arguments(
        input=draw.floats([draw.integer(1, 3), draw.integer(1, 8), *draw.shape(draw.integer(0, 2))], "f32", 3.0),
        alpha=draw.turn([None, 0.5, 2.0]),
        beta=draw.turn([None, 0.5]),
        bias=draw.turn([None, 2.0]),
        size=draw.turn([3, 1, 2, 5, 4]),
    )


@recipe("tract_extra_exp_mean_norm")
def _exp_mean_norm(draw: Draw) -> dict[str, Any]:
    shape = draw.shape(draw.integer(1, 3), 2, 6)
    axis = draw.integer(0, len(shape) - 1)
    return arguments(
        input=draw.floats(shape),
        state=draw.floats([*shape[:axis], *shape[axis + 1 :]]),
        axis=axis,
        alpha=draw.number_of(0.1, 0.95),
        skip=draw.turn([None, 0, 1, 2]),
        stateless=draw.turn([None, True, False]),
        scaling_factor=draw.number_of(0.5, 40.0),
    )


@recipe("tract_extra_exp_unit_norm")
def _exp_unit_norm(draw: Draw) -> dict[str, Any]:
    pairs = draw.number % 3 == 0
    shape = draw.shape(draw.integer(1, 3), 2, 6)
    axis = draw.integer(0, len(shape) - 1)
    state = np.abs(draw.floats([*shape[:axis], *shape[axis + 1 :]])) + np.float32(0.1)
    return arguments(
        input=draw.floats([*shape, 2] if pairs else shape),
        state=state.astype(np.float32),
        axis=axis,
        alpha=draw.number_of(0.1, 0.95),
        skip=draw.turn([None, 0, 1, 2]),
        stateless=draw.turn([None, True, False]),
        complex=True if pairs else draw.turn([None, False]),
        epsilon=draw.turn([None, 0.5]),
    )


@recipe("tract_core_lstm_epilogue")
def _lstm_epilogue(draw: Draw) -> dict[str, Any]:
    hidden, rows, kind = draw.integer(1, 9), draw.integer(1, 4), floating(draw)
    return {
        "preact": draw.floats([rows, 4 * hidden], kind),
        "c_prev": draw.floats([rows, hidden], kind),
        "hidden": hidden,
    }


@recipe("tract_core_gru_epilogue")
def _gru_epilogue(draw: Draw) -> dict[str, Any]:
    hidden, rows, kind = draw.integer(1, 9), draw.integer(1, 4), floating(draw)
    gates = [rows, 3 * hidden]
    return {
        "xh": draw.floats(gates, kind),
        "rh": draw.floats(gates, kind),
        "h_prev": draw.floats([rows, hidden], kind),
        "hidden": hidden,
    }


@recipe("tract_core_gru_seq", constant=("w", "r", "b"))
def _gru_seq(draw: Draw) -> dict[str, Any]:
    batch, steps, enter, hidden = draw.integer(1, 3), draw.integer(1, 5), draw.integer(1, 4), draw.integer(1, 5)
    projected, bias = draw.turn([0, 0, 1]), draw.turn([0, 1])
    return arguments(
        x=draw.floats([batch, steps, 3 * hidden if projected else enter]),
        w=None if projected else draw.floats([3 * hidden, enter], "f32", 0.7),
        r=draw.floats([3 * hidden, hidden], "f32", 0.7),
        b=draw.floats([1, 6 * hidden]) if bias else None,
        initial_h=draw.floats([batch, 1, hidden], "f32", 0.7),
        hidden=hidden,
        chunk=draw.turn([1, -1]),
        has_bias=bias,
        reset_every_turn=draw.turn([None, 1]),
        emit_y=draw.turn([None, 1, 0]),
        projected=projected or None,
    )


@recipe("tract_transformers_causal_conv1d_update", "tract_qwen35_causal_conv1d_update")
def _causal_conv(draw: Draw) -> dict[str, Any]:
    batch, channels, steps, width = draw.integer(1, 2), draw.integer(1, 4), draw.integer(1, 6), draw.integer(1, 4)
    kind = floating(draw)
    return {
        "input": draw.floats([batch, channels, steps], kind),
        "weight": draw.floats([channels, width], kind),
        "initial_state": draw.floats([batch, channels, width], kind),
    }


@recipe("tract_transformers_gdn_recurrent", "tract_qwen35_gdn_recurrent")
def _gdn(draw: Draw) -> dict[str, Any]:
    batch, steps, heads, width = draw.integer(1, 2), draw.integer(1, 4), draw.integer(1, 2), draw.integer(1, 5)
    serving = heads * draw.integer(1, 2)
    return {
        "query": draw.floats([batch, steps, heads, width]),
        "key": draw.floats([batch, steps, heads, width]),
        "value": draw.floats([batch, steps, serving, width]),
        "log_decay": -np.abs(draw.floats([batch, steps, serving])),
        "beta": np.abs(draw.floats([batch, steps, serving], "f32", 0.4)),
        "initial_state": draw.floats([batch, serving, width, width]),
    }


@recipe("tract_transformers_apply_rope")
def _rope(draw: Draw) -> dict[str, Any]:
    shape, kind = [*draw.shape(draw.integer(1, 3)), 2 * draw.integer(1, 4)], floating(draw)
    angles = [1 if at < len(shape) - 2 else extent for at, extent in enumerate(shape)]
    return {"input": draw.floats(shape, kind), "cos": draw.floats(angles, kind), "sin": draw.floats(angles, kind)}


@recipe("tract_transformers_scaled_masked_softmax")
def _masked_softmax(draw: Draw) -> dict[str, Any]:
    shape, kind = draw.shape(draw.integer(2, 4), 2, 6), floating(draw)
    masked = [1 if at < len(shape) - 2 else extent for at, extent in enumerate(shape)]
    boolean = draw.number % 2 == 1
    mask = draw.flags(masked) if boolean else draw.floats(masked, kind)
    if boolean:
        mask[..., 0] = True  # a row that is masked everywhere is NaN, whatever comes after
    return arguments(
        input=draw.floats(shape, kind),
        mask=mask,
        scale=draw.number_of(0.1, 2.0),
        post_softmax_mask=draw.turn([None, True, None, False]) if boolean else None,
    )


def _heads(draw: Draw, rank: int) -> tuple[list[int], list[int], list[int]]:
    """Return the shapes of queries, keys and values."""
    batch, rows, columns, width = draw.integer(1, 2), draw.integer(1, 5), draw.integer(1, 6), draw.integer(1, 6)
    other = width if draw.number % 3 else draw.integer(1, 5)
    if rank == 3:
        return [batch, rows, width], [batch, columns, width], [batch, columns, other]
    heads = draw.integer(1, 2)
    return (
        [batch, heads * draw.integer(1, 3), rows, width],
        [batch, heads, columns, width],
        [batch, heads, columns, other],
    )


@recipe("tract_transformers_sdpa")
def _sdpa(draw: Draw) -> dict[str, Any]:
    rank = draw.turn([4, 3, 4])
    q, k, v = _heads(draw, rank)
    causal = draw.number % 4 == 1
    if causal:
        q[-2] = min(q[-2], k[-2])
    masked = draw.number % 4 == 2
    return arguments(
        q=draw.floats(q),
        k=draw.floats(k),
        v=draw.floats(v),
        mask=draw.floats([1] * (rank - 2) + [q[-2], k[-2]]) if masked else None,
        scale=draw.turn([None, 0.3, None]),
        datum_type="f32",
        acc_datum_type="f32",
        is_causal=causal,
    )


@recipe("tract_transformers_window_kv_sdpa")
def _window_sdpa(draw: Draw) -> dict[str, Any]:
    batch, heads, steps, width = draw.integer(1, 2), draw.integer(1, 2), draw.turn([1, 1, 2, 5]), draw.integer(2, 6)
    shape = [batch, heads, steps, width]
    return arguments(
        q=draw.floats([batch, heads * draw.integer(1, 2), steps, width]),
        k=draw.floats(shape),
        v=draw.floats(shape),
        axis=2,
        window=draw.integer(1, 4),
        scale=draw.turn([None, 0.4]),
    )


@recipe("tract_transformers_quantized_kv_sdpa")
def _quantised_sdpa(draw: Draw) -> dict[str, Any]:
    batch, heads, steps, width = draw.integer(1, 2), draw.integer(1, 2), draw.turn([1, 3, 6]), draw.integer(2, 6)
    shape = [batch, heads, steps, width]
    return arguments(
        q=draw.floats(shape), k=draw.floats(shape), v=draw.floats(shape), axis=2, scale=draw.turn([None, 0.4])
    )


def _cache(draw: Draw, tokens: int) -> dict[str, Any]:
    shape = [1, draw.integer(1, 3), tokens, draw.integer(2, 6)]
    past = [1, shape[1], 0, shape[3]]
    return {
        "input": draw.floats(shape),
        "name": "cache",
        "axis": 2,
        "datum_type": "f32",
        "past_sequence_shape": past,
        "input_sequence_shape": shape,
    }


@recipe("tract_transformers_dyn_kv_cache")
def _dyn_cache(draw: Draw) -> dict[str, Any]:
    return _cache(draw, draw.integer(1, 7))


@recipe("tract_transformers_quantized_dyn_kv_cache")
def _quantised_cache(draw: Draw) -> dict[str, Any]:
    arguments = _cache(draw, draw.turn([1, 4, 7, 36, 40, 70]))
    return {**arguments, "bits": draw.turn([8, 4]), "per_channel": draw.turn([0, 0, 1, 1])}


@recipe("tract_moe_ffn", constant=("wg", "w1", "w2", "w3", "wg_bias", "w1_bias", "w3_bias", "w2_bias"))
def _experts(draw: Draw) -> dict[str, Any]:
    experts, width, hidden = draw.integer(2, 5), draw.integer(2, 5), draw.integer(2, 6)
    linear = draw.number % 2 == 1
    inner, outer = ([hidden, width], [width, hidden]) if linear else ([width, hidden], [hidden, width])
    clamped = draw.number % 5 == 4
    gated = clamped or draw.number % 3 != 0
    biased = draw.number % 4 == 3
    tokens = [draw.integer(1, 4)] if draw.number % 2 else [draw.integer(1, 2), draw.integer(1, 3)]
    return arguments(
        x=draw.floats([*tokens, width]),
        wg=draw.floats([experts, width]),
        w1=draw.floats([experts, *inner], "f32", 0.6),
        w2=draw.floats([experts, *outer], "f32", 0.6),
        w3=draw.floats([experts, *inner], "f32", 0.6) if gated else None,
        wg_bias=draw.floats([experts]) if biased else None,
        w1_bias=draw.floats([experts, hidden]) if biased else None,
        w3_bias=draw.floats([experts, hidden]) if biased and gated else None,
        w2_bias=draw.floats([experts, width]) if biased else None,
        k=draw.integer(1, experts),
        activation=draw.turn(["silu", "gelu", "relu", "swiglu"] if gated else ["silu", "gelu", "relu"]),
        gate=draw.turn(["softmax_topk", "softmax_all", "sigmoid", "raw"]),
        act_alpha=draw.number_of(0.8, 2.0) if clamped else None,
        act_limit=draw.number_of(1.0, 5.0) if clamped else None,
        expert_layout="linear" if linear else draw.turn([None, "canonical"]),
    )
