"""Attention, its masks and caches, and rotary positions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from t2n_core.dialect.arrays import Array, round_half_away
from t2n_core.dialect.meaning.tract.reduction import softmax
from t2n_core.dialect.registry import defines
from t2n_core.errors import SpecError


@defines("tract_transformers_apply_rope")
def apply_rope(input: Array, cos: Array, sin: Array) -> Array:
    """Return vectors rotated by angles whose cosines and sines are given.

    Formula: x * cos + rotate(x) * sin, where rotate negates the second half of the last axis and puts it first. Shapes:
    same as the input, to which cos and sin are broadcast; the last axis has an even extent.
    Source: transformers' apply_rotary_pos_emb (Llama); tract transformers/src/ops/apply_rope.rs.
    """
    half, odd = divmod(input.shape[-1], 2)
    if odd:
        raise SpecError(f"the last axis has {input.shape[-1]} elements", op="tract_transformers_apply_rope")
    rotated = np.concatenate([-input[..., half:], input[..., :half]], axis=-1)
    return np.asarray(input * cos + rotated * sin)


def _masked(scores: Array, mask: Array) -> Array:
    """Return scores under a mask: -inf where a boolean is False, else the sum of both."""
    return np.where(mask, scores, -np.inf) if mask.dtype == np.bool_ else scores + mask


@defines("tract_transformers_scaled_masked_softmax")
def scaled_masked_softmax(input: Array, mask: Array, scale: float, post_softmax_mask: bool = False) -> Array:
    """Return the softmax, along the last axis, of the scaled input under a mask.

    Formula: softmax(input * scale + mask); a boolean mask stands for -inf where it is False. With `post_softmax_mask`
    and a boolean mask, the result is 0 where the mask is False. Shapes: same as the input; the mask is broadcast.
    Special values: a row that is masked everywhere is NaN; 0 with `post_softmax_mask`.
    Source: tract transformers/src/ops/scaled_masked_softmax.rs.
    """
    shares = softmax(_masked(input * float(scale), mask), [-1])
    if post_softmax_mask:
        return np.where(mask, shares, 0.0)
    return shares


def attend(q: Array, k: Array, v: Array, mask: Array | None, scale: float | None) -> Array:
    """Return softmax(q k' * scale + mask) v; each head of k and v serves several heads of q, in turn."""
    groups = q.shape[1] // k.shape[1] if q.ndim == 4 else 1
    if groups > 1:
        k, v = np.repeat(k, groups, axis=1), np.repeat(v, groups, axis=1)
    factor = 1.0 / math.sqrt(q.shape[-1]) if scale is None else float(scale)
    scores = np.einsum("...mk,...nk->...mn", q, k) * factor
    weights = softmax(scores if mask is None else _masked(scores, mask), [-1])
    return np.asarray(np.einsum("...mn,...nv->...mv", weights, v))


@defines("tract_transformers_sdpa")
def sdpa(
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None = None,
    scale: float | None = None,
    datum_type: str = "f32",
    acc_datum_type: str = "f32",
    is_causal: bool = False,
) -> Array:
    """Return the attention of queries to keys, applied to values.

    Formula: softmax(q k' * scale + mask) v; scale is 1 / sqrt(width of q) where it is missing. `is_causal`: the query m
    of M sees the key n of N where n <= m + N - M; there is no other mask then. Shapes: [b, S, w] or [b, heads, S, w];
    q has as many heads as k and v, or a multiple, whose neighbours share one; the mask is broadcast; v may have another
    width, which the result takes. Domain: a mask of floats, which is added; `acc_datum_type` is the type of the sums.
    Special values: a row that is masked everywhere by -inf is NaN.
    Source: torch.nn.functional.scaled_dot_product_attention, whose causal mask is aligned at the last key here; tract
    transformers/src/ops/sdpa.rs.
    """
    if is_causal:
        if mask is not None:
            raise SpecError("a mask and `is_causal` exclude each other", op="tract_transformers_sdpa")
        rows, columns = q.shape[-2], k.shape[-2]
        mask = np.arange(columns)[None, :] <= np.arange(rows)[:, None] + columns - rows
    return attend(q, k, v, mask, scale)


@defines("tract_transformers_dyn_kv_cache")
def dyn_kv_cache(
    input: Array,
    name: str,
    axis: int,
    datum_type: str,
    past_sequence_shape: Sequence[int],
    input_sequence_shape: Sequence[int],
) -> Array:
    """Return the cache with the input appended: in the first call of a session, the input itself.

    A later call returns the results of all calls, concatenated along the axis. The shapes are size expressions for the
    engine's analysis.
    Source: tract transformers/src/ops/dyn_kv_cache.rs.
    """
    return input.copy()


_SINK = 4
_KEY_BLOCK = 32


def _quantised(values: Array, levels: int, axis: int) -> Array:
    """Return values rounded to equal steps between the least and the greatest along an axis."""
    low, high = values.min(axis=axis, keepdims=True), values.max(axis=axis, keepdims=True)
    step = np.where(high > low, (high - low) / levels, 1.0)
    return np.asarray(low + np.clip(round_half_away((values - low) / step), 0, levels) * step)


@defines("tract_transformers_quantized_dyn_kv_cache")
def quantized_dyn_kv_cache(
    input: Array,
    name: str,
    axis: int,
    bits: int,
    per_channel: int,
    datum_type: str,
    past_sequence_shape: Sequence[int],
    input_sequence_shape: Sequence[int],
) -> Array:
    """Return the cache with the input appended, as it is read back from 4 or 8 bits.

    Formula: the first 4 tokens stay exact. Values (`per_channel` 0): each later token is rounded to 2^bits - 1 equal
    steps between its least and its greatest element. Keys (`per_channel` 1): each full block of 32 later tokens is
    rounded likewise for each channel; the tokens of a block that is not full yet stay exact. Halves are rounded away
    from zero. Shapes: [batch, heads, tokens, channels]; `axis` is the token axis. This is the first call of a session;
    a later call appends to the earlier tokens.
    Source: tract transformers/src/ops/quant_dyn_kv_cache.rs (the layout of KIVI, arXiv 2402.02750).
    """
    if bits not in (4, 8):
        raise SpecError(f"{bits} bits", op="tract_transformers_quantized_dyn_kv_cache")
    levels, output = 2**bits - 1, np.moveaxis(input, axis, -2).copy()
    if not per_channel:
        if output.shape[-2] > _SINK:
            output[..., _SINK:, :] = _quantised(output[..., _SINK:, :], levels, -1)
    else:
        for start in range(_SINK, output.shape[-2] - _KEY_BLOCK + 1, _KEY_BLOCK):
            block = slice(start, start + _KEY_BLOCK)
            output[..., block, :] = _quantised(output[..., block, :], levels, -2)
    return np.moveaxis(output, -2, axis)


@defines("tract_transformers_window_kv_sdpa")
def window_kv_sdpa(q: Array, k: Array, v: Array, axis: int, window: int, scale: float | None = None) -> Array:
    """Return the attention of each query to the last `window` keys up to its own.

    Formula: `tract_transformers_sdpa` in which the query at position p sees the keys from p - window + 1 to p. Shapes:
    [b, heads, S, w]; `axis`, 2, is the position axis. This is the first call of a session: a later call also sees the
    keys and values of earlier calls.
    Source: the sliding window of Mistral (transformers); tract transformers/src/ops/window_kv_cache.rs.
    """
    positions = np.arange(q.shape[axis])
    distance = positions[:, None] - positions[None, :]
    return attend(q, k, v, (distance >= 0) & (distance < window), scale)


@defines("tract_transformers_quantized_kv_sdpa")
def quantized_kv_sdpa(q: Array, k: Array, v: Array, axis: int, scale: float | None = None) -> Array:
    """Return the attention to keys and values that are held in 8 bits.

    Formula: `tract_transformers_sdpa` without a mask, over values that are rounded to 255 equal steps between the least
    and the greatest element of each token, and keys that are rounded likewise for each channel over all tokens. Shapes:
    [b, heads, S, w]; `axis`, 2, is the position axis. This is the first call of a session: a later call also sees the
    keys and values of earlier calls.
    Source: tract transformers/src/ops/kv_quant.rs (quant_dequant), tract#2329 (nearly without loss).
    """
    return attend(q, _quantised(k, 255, axis), _quantised(v, 255, -1), None, scale)
