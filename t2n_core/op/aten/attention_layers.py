"""PyTorch's fused multi-head attention and transformer layer, which modules call in evaluation mode."""

from __future__ import annotations

import math

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import BOOL, Value
from t2n_core.op import formulas
from t2n_core.op.aten.attention import attend, engine_attention, scaled_scores
from t2n_core.op.aten.masked_softmax import masked_softmax, powers_and_sums
from t2n_core.op.aten.matmul import linear
from t2n_core.op.aten.norm import layer_norm
from t2n_core.op.registry import op


@op("aten::_native_multi_head_attention")
def native_multi_head_attention(
    g: Emitter,
    query: Value,
    key: Value,
    value: Value,
    embed_dim: int,
    num_head: int,
    qkv_weight: Value,
    qkv_bias: Value,
    proj_weight: Value,
    proj_bias: Value,
    mask: Value | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Value, Value | None]:
    """Return attention over inputs [batch, length, embed_dim]; the mask excludes keys where it is true, or not zero.

    A query without an allowed key gets NaN, unlike in scaled_dot_product_attention.
    """
    width = embed_dim // num_head
    parts = []
    for index, source in enumerate((query, key, value)):
        rows = g.take(qkv_weight, 0, index * embed_dim, (index + 1) * embed_dim)
        bias = g.take(qkv_bias, 0, index * embed_dim, (index + 1) * embed_dim)
        flat = linear(g, source, rows, bias)
        heads = g.reshape_to(flat, [*flat.shape[:2], num_head, width])
        parts.append(g.permute(heads, [0, 2, 1, 3]))
    scale, weights = 1.0 / math.sqrt(width), None
    if g.options.reify_sdpa and mask is None and not need_weights and g.spec.has("tract_transformers_sdpa"):
        mixed = engine_attention(g, parts[0], parts[1], parts[2], None, False, scale)
    elif mask is None and not need_weights:
        mixed = attend(g, parts[0], parts[1], parts[2], None, False, scale)
    else:
        scores = scaled_scores(g, parts[0], parts[1], scale)
        if mask is None:
            weights = masked_softmax(g, scores, None)
        else:
            weights = g.div(*powers_and_sums(g, scores, _allowed_mask(g, mask, mask_type)))
        mixed = g.matmul(weights, parts[2])
    joined = g.reshape_to(g.permute(mixed, [0, 2, 1, 3]), query.shape)
    out = linear(g, joined, proj_weight, proj_bias)
    if weights is None or not need_weights:
        return out, None
    if average_attn_weights:
        weights = g.squeeze(g.mean_reduce(weights, axes=[1]), axes=[1])
    return out, weights


def _allowed_mask(g: Emitter, mask: Value, mask_type: int | None) -> Value:
    """Return [batch or 1, heads or 1, queries or 1, keys], true where attention is allowed.

    Mask types: 0 is [queries, keys], 1 is [batch, keys], 2 has all four axes.
    """
    hidden = mask if mask.dtype == BOOL else g.ne(mask, 0)
    allowed = g.not_(hidden)
    if mask_type == 1:
        return g.unsqueeze(g.unsqueeze(allowed, axes=[1]), axes=[1])
    return g.lift(allowed, 4)


@op("aten::_transformer_encoder_layer_fwd")
def transformer_encoder_layer(
    g: Emitter,
    src: Value,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Value,
    qkv_bias: Value,
    proj_weight: Value,
    proj_bias: Value,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Value,
    norm_bias_1: Value,
    norm_weight_2: Value,
    norm_bias_2: Value,
    ffn_weight_1: Value,
    ffn_bias_1: Value,
    ffn_weight_2: Value,
    ffn_bias_2: Value,
    mask: Value | None = None,
    mask_type: int | None = None,
) -> Value:
    """Return attention and a feed-forward net, each with a residual; the norms come before or after them."""

    def norm(x: Value, weight: Value, bias: Value) -> Value:
        return layer_norm(g, x, [embed_dim], weight, bias, eps)

    def attention(x: Value) -> Value:
        return native_multi_head_attention(
            g, x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False, True, mask_type
        )[0]

    def feed_forward(x: Value) -> Value:
        inner = linear(g, x, ffn_weight_1, ffn_bias_1)
        return linear(g, _gelu(g, inner) if use_gelu else g.relu(inner), ffn_weight_2, ffn_bias_2)

    if norm_first:
        mid = g.add(src, attention(norm(src, norm_weight_1, norm_bias_1)))
        return g.add(mid, feed_forward(norm(mid, norm_weight_2, norm_bias_2)))
    mid = norm(g.add(src, attention(src)), norm_weight_1, norm_bias_1)
    return norm(g.add(mid, feed_forward(mid)), norm_weight_2, norm_bias_2)


def _gelu(g: Emitter, x: Value) -> Value:
    """x * (1 + erf(x / sqrt(2))) / 2."""
    return g.mul(g.mul(x, 0.5), g.add(formulas.erf(g, g.mul(x, math.sqrt(0.5))), 1.0))
