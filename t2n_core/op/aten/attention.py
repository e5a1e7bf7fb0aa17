"""Attention: `scaled_dot_product_attention` as the formula, or as the engine's own operator."""

from __future__ import annotations

import math

import numpy as np

from t2n_core.nnef.emitter import Emitter, Expected
from t2n_core.nnef.graph import BOOL, FLOAT16, FLOAT32, Value
from t2n_core.nnef.sizes.dims import floor_div, same
from t2n_core.op.aten.masked_softmax import (
    bias_of_mask,
    biased_softmax,
    causal_mask,
    has_no_masked_row,
    least_reached,
    masked_softmax,
)
from t2n_core.op.option_effects import use_option
from t2n_core.op.promote import widen_float16
from t2n_core.op.registry import op
from t2n_core.op.weights import constant_values

LEAST_REACHED = -3e4
"""Rows of a mask reach this for the engine's operator, which skips 32 keys that are all below -65503."""
HEADS_FIRST = [1, 0, 2, 3]


# -------------------------------------------------------------------------------------------------------------- sdpa
@op("aten::scaled_dot_product_attention")
def scaled_dot_product_attention(
    g: Emitter,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    """softmax(query @ key.T * scale + mask) @ value, float16 in float32."""
    if dropout_p > 0:
        raise g.fail("attention drops out: the module is in training mode", hint="call model.eval() before exporting")
    dtype = query.dtype
    query, key, value = (widen_float16(g, v) for v in (query, key, value))
    if enable_gqa:
        key, value = _repeat_heads(g, key, query), _repeat_heads(g, value, query)
    if scale is None and not isinstance(query.shape[-1], int):
        query, scale = g.div(query, g.sqrt(g.size(query.shape[-1], query.dtype))), 1.0
    if scale is None:
        scale = 1.0 / math.sqrt(int(query.shape[-1]))
    return g.cast(attend(g, query, key, value, attn_mask, is_causal, scale), dtype)


@op(
    "aten::scaled_dot_product_attention",
    target="tract",
    option="reify_sdpa",
    needs=("tract_transformers_sdpa",),
)
def reified_attention(
    g: Emitter,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    """Write attention as the engine's own operator if that computes this call correctly, otherwise as the formula.

    The operator's causal mask is valid for square scores only, and each query must attend to at least one key: a fully
    masked query is NaN there and zero in PyTorch.
    """
    refused = _refusal(g, query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
    if refused:
        g.graph.declined.setdefault("reify_sdpa", []).append(refused)
        return _formula(g, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    mask = None if attn_mask is None else _additive_mask(g, attn_mask, query)
    scale = 1.0 / math.sqrt(int(query.shape[-1])) if scale is None else scale
    return engine_attention(g, query, key, value, mask, is_causal, scale)


def engine_attention(
    g: Emitter, query: Value, key: Value, value: Value, mask: Value | None, is_causal: bool, scale: float
) -> Value:
    """Write the engine's operator. float16 that accumulates in float32 is cast before: 0.22 would return float32."""
    if query.dtype == FLOAT16 and use_option(g, "attention_in_f32"):
        query, key, value = (g.cast(v, FLOAT32) for v in (query, key, value))
        mask = None if mask is None else g.cast(mask, FLOAT32)
        return g.cast(engine_attention(g, query, key, value, mask, is_causal, scale), FLOAT16)
    use_option(g, "reify_sdpa")
    optional = {} if mask is None else {"mask": mask}
    dtype = "f16" if query.dtype == FLOAT16 else "f32"
    return g.tract_transformers_sdpa(
        query,
        key,
        value,
        **optional,
        scale=scale,
        datum_type=dtype,
        acc_datum_type=dtype,
        is_causal=is_causal,
        out=Expected(query.shape, query.dtype),
    )


_formula = scaled_dot_product_attention


def _refusal(
    g: Emitter,
    query: Value,
    key: Value,
    value: Value,
    mask: Value | None,
    dropout_p: float,
    is_causal: bool,
    enable_gqa: bool,
) -> str:
    """Return why the engine's operator cannot compute a call; empty if it can."""
    shapes = [v.shape for v in (query, key, value)]
    ranks = {len(s) for s in shapes}
    if dropout_p > 0 or query.dtype not in (FLOAT16, FLOAT32):
        return "it drops out" if dropout_p > 0 else f"its inputs are {query.dtype}"
    if is_causal and not same(query.shape[-2], key.shape[-2]):
        return "it is causal and has not as many queries as keys"
    if ranks not in ({3}, {4}) or (query.rank == 3 and enable_gqa):
        return "its inputs are not of rank 4, or of rank 3 without groups"
    if not isinstance(query.shape[-1], int) or not all(same(s[-1], query.shape[-1]) for s in shapes):
        return "its heads have different widths, or unknown ones"
    if not all(same(s[0], query.shape[0]) for s in shapes):
        return "its inputs have different batch sizes"
    heads = [s[1] for s in shapes]
    if query.rank == 4 and not (all(isinstance(h, int) for h in heads) and (enable_gqa or len(set(heads)) == 1)):
        return "the number of heads differs between its inputs, or is unknown"
    if mask is None:
        return ""
    if mask.shape[-2:] != (query.shape[-2], key.shape[-2]) or mask.rank > query.rank:
        return "its mask does not have the shape of the scores"
    least = least_reached(g, mask)
    if least is None:
        return "nothing proves that its mask leaves no query without a key"
    return "" if least >= LEAST_REACHED else "its mask may be so low for all keys of a query that it masks them"


def _additive_mask(g: Emitter, mask: Value, query: Value) -> Value:
    """Return a mask without fully masked rows as a finite bias, in the rank and dtype of the queries.

    Of the first 32 keys that are all minus infinity for a query, the engine's operator makes NaN.
    """
    elements, lowest = constant_values(mask), float(np.finfo(query.dtype).min)
    if elements is not None:
        bias = np.where(elements, 0.0, lowest) if mask.dtype == BOOL else np.maximum(elements, lowest)
        return g.constant(bias.reshape((1,) * (query.rank - mask.rank) + bias.shape).astype(query.dtype))
    if mask.dtype == BOOL:
        return bias_of_mask(g, g.lift(mask, query.rank), query.dtype)
    return g.max(g.cast(g.lift(mask, query.rank), query.dtype), lowest)


def attend(
    g: Emitter, query: Value, key: Value, value: Value, mask: Value | None, is_causal: bool, scale: float
) -> Value:
    """Return the formula's result."""
    rank = max(v.rank for v in (query, key, value))
    query, key, value = (g.lift(v, rank) for v in (query, key, value))
    if not all(map(_is_split_into_heads, (query, key, value))):
        return _attend(g, query, key, value, mask, is_causal, scale)
    query, key, value = (g.permute(v, HEADS_FIRST) for v in (query, key, value))
    mask = None if mask is None else _heads_first(g, mask)
    return g.permute(_attend(g, query, key, value, mask, is_causal, scale), HEADS_FIRST)


def _is_split_into_heads(value: Value) -> bool:
    """Return whether a value [batch, heads, length, width] is a layer's output with swapped axes.

    Between the products of such values the batch is better as the second axis. As the first it is next to the heads, so
    that the engine merges both axes of the scores, for which it copies the values and the result from 0.23.0 on.
    """
    made = value.producer
    is_swapped = made is not None and made.name == "transpose" and made.arguments["axes"] == [0, 2, 1, 3]
    return is_swapped and not any(same(extent, 1) for extent in value.shape[:2])


def _heads_first(g: Emitter, mask: Value) -> Value:
    """Return a mask with the heads before the batch."""
    elements = constant_values(mask)
    if elements is not None:
        return g.constant(elements.reshape((1,) * (4 - mask.rank) + elements.shape).swapaxes(0, 1))
    turned = g.permute(g.lift(mask, 4), HEADS_FIRST)
    if mask in g.open_masks:
        g.open_masks[turned] = g.open_masks[mask]
    return turned


def _attend(
    g: Emitter, query: Value, key: Value, value: Value, mask: Value | None, is_causal: bool, scale: float
) -> Value:
    rank = query.rank
    scores = scaled_scores(g, query, key, scale)
    if is_causal:
        causal = g.lift(causal_mask(g, query.shape[-2], key.shape[-2]), rank)
        weights = masked_softmax(g, scores, causal, no_masked_row=True)  # every query attends to the first key
    elif mask is None:
        weights = masked_softmax(g, scores, None)
    elif mask.dtype == BOOL:
        weights = masked_softmax(g, scores, g.lift(mask, rank), no_masked_row=has_no_masked_row(g, mask))
    else:
        weights = biased_softmax(g, scores, mask)
    return g.matmul(weights, value)


def scaled_scores(g: Emitter, query: Value, key: Value, scale: float) -> Value:
    return g.matmul(g.mul(query, scale), key, transposeB=True)


def _repeat_heads(g: Emitter, value: Value, query: Value) -> Value:
    """Repeat each head once per query head that shares it."""
    heads, query_heads = value.shape[-3], query.shape[-3]
    if same(heads, query_heads):
        return value
    times = floor_div(query_heads, heads)
    axis = value.rank - 2
    wide = g.unsqueeze(value, axes=[axis])
    wide = g.expand(wide, (*value.shape[:axis], times, *value.shape[axis:]))
    return g.reshape_to(wide, [*value.shape[: axis - 1], query_heads, *value.shape[axis:]])


@op("aten::_scaled_dot_product_flash_attention_for_cpu")
def _flash_for_cpu(
    g: Emitter,
    query: Value,
    key: Value,
    value: Value,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    attn_mask: Value | None = None,
    scale: float | None = None,
) -> tuple[Value, None]:
    return scaled_dot_product_attention(g, query, key, value, attn_mask, dropout_p, is_causal, scale), None


@op("aten::_scaled_dot_product_attention_math")
def _math(
    g: Emitter,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[Value, None]:
    return scaled_dot_product_attention(g, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa), None
