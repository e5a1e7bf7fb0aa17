"""Attention, by itself and inside transformer layers."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.contract.cases import Lazy, bools, build, case, randn, tensor, weight

aten = torch.ops.aten
sdpa = F.scaled_dot_product_attention
QUERY, KEY, VALUE = randn(2, 3, 5, 8), randn(2, 3, 7, 8), randn(2, 3, 7, 4)
LENGTHS = {0: {0: "B", 2: "L"}, 1: {0: "B", 2: "S"}, 2: {0: "B", 2: "S"}}
LATER = tensor([[column > line for column in range(5)] for line in range(5)])
SHORTER = tensor([[False, False, False, True, True], [False, False, False, False, True]])
TIMES = {0: {0: "B", 1: "T"}}


def forbidding() -> Lazy:
    """A mask to add, with minus infinity here and there, and a row of nothing else."""

    def make() -> Tensor:
        mask = torch.randn(2, 1, 5, 7)
        mask[0, 0, 1] = mask[1, 0, 2, :4] = float("-inf")
        return mask

    return Lazy(make)


class CausalDecoder(nn.TransformerDecoder):
    """Makes its mask itself, and leaves PyTorch to see that it is the causal one."""

    def __init__(self) -> None:
        super().__init__(nn.TransformerDecoderLayer(8, 2, 12, batch_first=True), 2)

    def forward(self, tgt: Tensor, memory: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(tgt, memory, tgt_mask=nn.Transformer.generate_square_subsequent_mask(tgt.shape[1]))


def attention(*args: Any, **kwargs: Any) -> Lazy:
    """Self-attention of one input, with the keywords of its call."""
    call = kwargs.pop("call", {})

    class Self(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.MultiheadAttention(*args, **kwargs)

        def forward(self, x: Tensor, **more: Any) -> Any:
            return self.inner(x, x, x, **call, **more)

    return build(Self)


def layer(**kwargs: Any) -> Lazy:
    return build(nn.TransformerEncoderLayer, 8, 2, 16, **kwargs)


def _weights() -> list[Lazy]:
    """Of a fused layer, in the order of its arguments."""
    return [weight(randn(*shape, scale=0.3)) for shape in ((24, 8), (24,), (8, 8), (8,))]


def _fused() -> list[Any]:
    shapes = ((8,), (8,), (8,), (8,), (16, 8), (16,), (8, 16), (8,))
    return [weight(randn(*shape, scale=0.3)) for shape in shapes]


CASES = [
    case("sdpa of a dynamic width", F.scaled_dot_product_attention, *[randn(2, n, 4) for n in (3, 5, 5)]).dynamic(
        {0: {2: "D"}, 1: {2: "D"}}
    ),
    case("decoder with a causal mask", build(CausalDecoder), randn(2, 5, 8), randn(2, 4, 8)).dynamic(
        {0: {0: "B", 1: "T"}, 1: {0: "B", 1: "S"}}
    ),
    case("sdpa", sdpa, QUERY, KEY, VALUE).dynamic(LENGTHS),
    case("sdpa, scale of a length", lambda x: sdpa(x, x, x, scale=math.log(x.shape[1])), randn(2, 5, 4)).dynamic(
        {0: {1: "T"}}
    ),
    case("sdpa, scale", sdpa, randn(2, 5, 8), randn(2, 7, 8), randn(2, 7, 4), scale=0.3),
    case("sdpa, mask", sdpa, QUERY, KEY, VALUE, bools(5, 7)),
    case("sdpa, nothing allowed", sdpa, QUERY, KEY, VALUE, tensor([[False] * 7] * 5)),
    case("sdpa, mask to add", sdpa, QUERY, KEY, VALUE, forbidding()),
    case("sdpa, known mask to add", sdpa, QUERY, KEY, VALUE, weight(forbidding())),
    case("sdpa, finite mask to add", sdpa, QUERY, KEY, VALUE, weight(randn(5, 7))),
    case("sdpa, causal", sdpa, QUERY, KEY, VALUE, is_causal=True),
    case("sdpa, causal, dynamic", sdpa, QUERY, KEY, VALUE, is_causal=True).dynamic(LENGTHS),
    case("sdpa, grouped queries", sdpa, randn(2, 6, 5, 8), KEY, VALUE, enable_gqa=True).dynamic(LENGTHS),
    case("sdpa of float16", sdpa, *(randn(2, 3, n, 8, dtype=torch.float16) for n in (5, 7, 7))),
    case("sdpa, dropout", sdpa, QUERY, KEY, VALUE, dropout_p=0.5).refused("training mode"),
    case(
        "causal mask by hand",
        lambda x: x.masked_fill(torch.arange(x.shape[1])[:, None] < torch.arange(x.shape[1]), 0.0),
        randn(2, 5, 5),
    ).dynamic({0: {0: "B", 1: "T", 2: "T"}}),
    case(
        "_scaled_dot_product_flash_attention_for_cpu",
        lambda *a: aten._scaled_dot_product_flash_attention_for_cpu(*a, is_causal=True)[0],
        QUERY,
        KEY,
        KEY,
    ),
    case(
        "_scaled_dot_product_attention_math",
        lambda *a: aten._scaled_dot_product_attention_math(*a)[0],
        QUERY,
        KEY,
        VALUE,
    ),
    case("multi-head", attention(8, 2, batch_first=True), randn(2, 5, 8)).dynamic(TIMES),
    case("multi-head, time first", attention(8, 2), randn(5, 2, 8)).dynamic({0: {0: "T", 1: "B"}}),
    case("multi-head unbatched", attention(8, 2), randn(5, 8)).dynamic({0: {0: "T"}}),
    case("multi-head, no weights", attention(8, 2, batch_first=True, call={"need_weights": False}), randn(2, 5, 8)),
    case(
        "multi-head, weights by head",
        attention(8, 2, batch_first=True, call={"average_attn_weights": False}),
        randn(2, 5, 8),
    ),
    case("multi-head, padding", attention(8, 2, batch_first=True), randn(2, 5, 8), key_padding_mask=weight(SHORTER)),
    case("multi-head, mask", attention(8, 2, batch_first=True), randn(2, 5, 8), attn_mask=LATER),
    case("multi-head, mask to add", attention(8, 2, batch_first=True), randn(2, 5, 8), attn_mask=randn(5, 5)),
    case(
        "multi-head, more keys", attention(8, 2, batch_first=True, add_bias_kv=True, add_zero_attn=True), randn(2, 5, 8)
    ).dynamic({0: {0: "B"}}),
    case(
        "_native_multi_head_attention",
        lambda x, *w: aten._native_multi_head_attention(x, x, x, 8, 2, *w),
        randn(2, 5, 8),
        *_weights(),
    ),
    case(
        "_native_multi_head_attention, padding",
        lambda x, m, *w: aten._native_multi_head_attention(x, x, x, 8, 2, *w, m, True, False, 1),
        randn(2, 5, 8),
        SHORTER,
        *_weights(),
    ),
    case(
        "_transformer_encoder_layer_fwd",
        lambda x, *w: aten._transformer_encoder_layer_fwd(x, 8, 2, *w[:4], False, False, 1e-5, *w[4:]),
        randn(2, 5, 8),
        *_weights(),
        *_fused(),
    ),
    case(
        "_transformer_encoder_layer_fwd, norm first, gelu, mask",
        lambda x, m, *w: aten._transformer_encoder_layer_fwd(x, 8, 2, *w[:4], True, True, 1e-5, *w[4:], m, 0),
        randn(2, 5, 8),
        LATER,
        *_weights(),
        *_fused(),
    ),
    case("encoder layer", layer(batch_first=True), randn(2, 5, 8)).dynamic(TIMES),
    case(
        "encoder layer, norm first, gelu", layer(batch_first=True, norm_first=True, activation="gelu"), randn(2, 5, 8)
    ).dynamic(TIMES),
    case("encoder layer, time first", layer(), randn(5, 2, 8)).dynamic({0: {0: "T", 1: "B"}}),
    case("encoder layer unbatched", layer(batch_first=True), randn(5, 8)).dynamic({0: {0: "T"}}),
    case("encoder layer, padding", layer(batch_first=True), randn(2, 5, 8), src_key_padding_mask=SHORTER),
    case("encoder layer, mask", layer(batch_first=True), randn(2, 5, 8), src_mask=LATER).dynamic({0: {0: "B"}}),
    case("encoder layer, both", layer(batch_first=True), randn(2, 5, 8), src_mask=LATER, src_key_padding_mask=SHORTER),
    case(
        "decoder layer", build(nn.TransformerDecoderLayer, 8, 2, 16, batch_first=True), randn(2, 5, 8), randn(2, 7, 8)
    ).dynamic({0: {0: "B", 1: "T"}, 1: {0: "B", 1: "S"}}),
    case(
        "transformer", build(nn.Transformer, 8, 2, 1, 1, 16, batch_first=True), randn(2, 5, 8), randn(2, 7, 8)
    ).dynamic({0: {0: "B", 1: "T"}, 1: {0: "B", 1: "S"}}),
]
