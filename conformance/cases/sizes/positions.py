"""Positions, masks from positions, scalars computed from sizes, caches, two symbols."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from conformance.cases.sizes.nets import BT, Function, S, SizesNet, Table, X, flags, floats, ints, lengths, of

PAST = floats(2, "P", 4)
NOW = floats(2, "S", 4)
STEPS = ((1, 1), (3, 5), (9, 4))
"""Sizes of two symbols."""
PASTS = ((0, 1), (3, 5), (9, 4))
EMPTY = {"P": (0, 4096)}
"""Before the first step there is no past."""


def _sinusoids(x: Tensor) -> Tensor:
    position = torch.arange(x.shape[1], dtype=torch.float32)[:, None]
    rate = torch.exp(torch.arange(0, 4, 2) * (-math.log(100.0) / 4))
    return x + torch.stack([torch.sin(position * rate), torch.cos(position * rate)], 2).flatten(1)


def _rotary(x: Tensor, start: int = 0) -> Tensor:
    angle = (torch.arange(x.shape[1]) + start)[:, None] * torch.tensor([1.0, 0.1])
    a, b = x.chunk(2, -1)
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


def _relative(m: Function, x: Tensor) -> Tensor:
    position = torch.arange(x.shape[1])
    distance = (position[None, :] - position[:, None]).clamp(-3, 3) + 3
    return ((x @ x.mT) + m.bias(distance)[..., 0]).softmax(-1) @ x


def _buckets(m: Function, x: Tensor) -> Tensor:
    """Return the buckets of T5: one for each small distance, larger ones by their logarithm."""
    position = torch.arange(x.shape[1])
    distance = (position[:, None] - position[None, :]).clamp(min=0)
    large = 4 + (torch.log(distance.clamp(min=1) / 4) / math.log(8) * 4).long().clamp(max=3)
    return (x @ x.mT) + m.bias(torch.where(distance < 4, distance, large))[..., 0]


def _relative_shift(x: Tensor) -> Tensor:
    """Shift as Transformer-XL does, from [B, T, 2 T - 1] to [B, T, T]."""
    size = x.shape[1]
    scores = x @ torch.cat([x, x[:, 1:].flip(1)], 1).mT
    padded = F.pad(scores, (1, 0)).reshape(x.shape[0], 2 * size, size)
    return padded[:, 1:].reshape(x.shape[0], size, 2 * size - 1)[..., :size]


def _attend(x: Tensor, allowed: Tensor) -> Tensor:
    return (x @ x.mT).masked_fill(~allowed, -1e4).softmax(-1) @ x


def _causal(x: Tensor) -> Tensor:
    return _attend(x, torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril())


def _band(x: Tensor) -> Tensor:
    ones = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)
    return _attend(x, ones.tril(2) & ones.triu(-3))


def _attend_in_chunks(x: Tensor) -> Tensor:
    """Return a mask in which each step sees its own chunk of 4 and all before."""
    chunk = torch.arange(x.shape[1]) // 4
    return _attend(x, chunk[None, :] <= chunk[:, None])


def _masked_mean(x: Tensor, y: Tensor) -> Tensor:
    inside = torch.arange(x.shape[1])[None, :] < y[:, None]
    return (x * inside[:, :, None]).sum(1) / inside.sum(1, keepdim=True)


def _last_valid(x: Tensor, y: Tensor) -> Tensor:
    return x.gather(1, (y - 1)[:, None, None].expand(-1, 1, x.shape[2]))[:, 0]


def _coordinates(x: Tensor) -> Tensor:
    rows = torch.linspace(-1, 1, x.shape[2])[:, None].expand(-1, x.shape[3])
    columns = torch.linspace(-1, 1, x.shape[3])[None].expand(x.shape[2], -1)
    return torch.cat([x, torch.stack([rows, columns])[None].expand(x.shape[0], -1, -1, -1)], 1)


def _alibi(x: Tensor) -> Tensor:
    position = torch.arange(x.shape[1])
    return ((x @ x.mT) - 0.5 * (position[:, None] - position).abs()).softmax(-1) @ x


def _cached_attention(past: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Steps see the past and each other up to themselves."""
    keys = torch.cat([past, x], 1)
    position = torch.arange(past.shape[1], keys.shape[1])
    allowed = torch.arange(keys.shape[1])[None, :] <= position[:, None]
    scores = (x @ keys.mT).masked_fill(~allowed, float("-inf"))
    return scores.softmax(-1) @ keys, keys


def _cached_offset(past: Tensor, x: Tensor) -> Tensor:
    keys = torch.cat([past, x], 1)
    allowed = torch.ones(x.shape[1], keys.shape[1], dtype=torch.bool).tril(past.shape[1])
    return F.scaled_dot_product_attention(x, keys, keys, attn_mask=allowed)


def _cached_rotary(past: Tensor, x: Tensor) -> Tensor:
    return torch.cat([past, _rotary(x, past.shape[1])], 1)


def _cached_convolution(m: Function, x: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
    joined = torch.cat([cache, x], 2)
    return m.conv(joined), joined[..., -2:]


def _cached_window(past: Tensor, x: Tensor) -> Tensor:
    """Attention over the last 8 steps of past and present."""
    keys = torch.cat([past, x], 1)[:, -8:]
    return F.scaled_dot_product_attention(x, keys, keys)


def _ring(x: Tensor, buffer: Tensor) -> tuple[Tensor, Tensor]:
    """Return the last 10 steps of a past and the input."""
    window = torch.cat([buffer, x], 1)[:, -10:]
    return window, window.mean(1)


def _ring_rolled(x: Tensor, buffer: Tensor) -> Tensor:
    """Write at most 5 steps into a ring buffer of 12, and return it."""
    count = min(x.shape[1], 5)
    return torch.cat([buffer[:, count:], x[:, :count]], 1)


POSITIONS: dict[str, SizesNet] = {
    "positions_added": of(lambda x: x + torch.arange(x.shape[1])[:, None], X),
    "positions_from_one": of(lambda x: x.cumsum(1) / torch.arange(1, x.shape[1] + 1)[:, None], X),
    "positions_backwards": of(lambda x: x * 0.9 ** torch.arange(x.shape[1] - 1, -1, -1)[:, None], X),
    "positions_of_half": of(lambda x: x[:, torch.arange(x.shape[1] // 2)] * 2, X),
    "positions_every_second": of(lambda x: x[:, torch.arange(0, x.shape[1], 2)] * 2, X),
    "positions_embedded": of(lambda m, x: x + m.table(torch.arange(x.shape[1])), X, table=lambda: nn.Embedding(40, 4)),
    "positions_table_cropped": of(lambda m, x: x + m.table.weight[: x.shape[1]], X, table=lambda: Table(40, 4)),
    "positions_table_last": of(lambda m, x: x + m.table.weight[-x.shape[1] :], X, table=lambda: Table(40, 4)),
    "positions_table_clamped": of(
        lambda m, x: x + m.table(torch.arange(x.shape[1]).clamp(max=15)), X, at=(1, 9, 20),
        table=lambda: nn.Embedding(16, 4)),
    "positions_around": of(lambda m, x: x + m.table(torch.arange(x.shape[1]) % 8), X, at=(1, 5, 12),
                           table=lambda: nn.Embedding(8, 4)),
    "positions_sinusoids": of(_sinusoids, X),
    "positions_rotary": of(_rotary, X),
    "positions_relative": of(_relative, X, at=(1, 3, 9), bias=lambda: nn.Embedding(7, 1)),
    "positions_in_buckets": of(_buckets, X, at=(1, 3, 9), bias=lambda: nn.Embedding(8, 1)),
    "positions_relative_shift": of(_relative_shift, X, at=(2, 5, 9)),
    "positions_alibi": of(_alibi, X),
    "positions_by_mask": of(lambda x: (x.long().cumsum(1) - 1).clamp(min=0), flags(2, "T")),
    "one_hot_positions": of(lambda x: x.mT @ F.one_hot(torch.arange(x.shape[1]) % 5, 5).float(), X),
    "linspace": of(lambda x: x * torch.linspace(-1, 1, x.shape[1])[:, None], X),
    "coordinates": of(_coordinates, floats(1, 3, "H", "W"), at=((1, 1), (4, 5), (8, 3))),
    "positions_embedded_up_to_40": of(
        lambda m, x: x + m.table(torch.arange(x.shape[1])), X, bounds={"T": (1, 40)},
        table=lambda: nn.Embedding(40, 4)),
    "identity_of_size": of(lambda x: (x @ x.mT) + torch.eye(x.shape[1]), X),
    "ones_of_size": of(lambda x: torch.ones(x.shape[0], 1, x.shape[1]) @ x, BT, at=STEPS),
    "filled_with_a_size": of(lambda x: x + torch.full((x.shape[1], 1), x.shape[1] / 2), X),
    "hann_window_of_size": of(lambda x: x * torch.hann_window(x.shape[1])[:, None], X, at=(2, 5, 12)),
    "mask_causal": of(_causal, X),
    "mask_causal_built_in": of(lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True), X),
    "mask_band": of(_band, X, at=(1, 3, 9)),
    "mask_by_chunks": of(_attend_in_chunks, X, at=(1, 3, 9)),
    "mask_first_half": of(lambda x: x * (torch.arange(x.shape[1]) < x.shape[1] // 2)[:, None], X),
    "mask_upper_triangle": of(lambda x: (x @ x.mT).triu(1), X),
    "mask_by_lengths": of(_masked_mean, X, lengths("T", 2)),
    "mask_last_valid": of(_last_valid, X, lengths("T", 2)),
    "mask_padding_attention": of(
        lambda x, y: F.scaled_dot_product_attention(x, x, x, attn_mask=(y | ~y.any(1, keepdim=True))[:, None]), X,
        flags(2, "T")),
}  # fmt: skip

NUMBERS: dict[str, SizesNet] = {
    "scaled_by_size": of(lambda x: x * x.shape[1] / (x.shape[0] + 1), BT, at=STEPS),
    "scaled_by_root": of(lambda x: x / math.sqrt(x.shape[1]), X),
    "scaled_by_logarithm": of(lambda x: x * math.log(x.shape[1] + 1), X),
    "scaled_by_min": of(lambda x: x * min(1.0, x.shape[1] / 64), X, at=(1, 10, 68)),
    "scaled_by_max": of(lambda x: x / max(x.shape[1] - 1, 1), X),
    "scaled_by_quotient": of(lambda x: x * (x.shape[1] // 3) + x.shape[1] % 4, X),
    "sum_over_count": of(lambda x: x.sum(1) / x.shape[1], X),
    "offset_by_min": of(lambda x: x + min(x.shape[1], 8), X, at=(1, 5, 12)),
}  # fmt: skip

CACHES: dict[str, SizesNet] = {
    "cache_joined": of(lambda past, x: torch.cat([past, x], 1), PAST, NOW, at=PASTS, bounds=EMPTY),
    "cache_attention": of(_cached_attention, PAST, NOW, at=PASTS, bounds=EMPTY),
    "cache_attention_by_offset": of(_cached_offset, PAST, NOW, at=PASTS, bounds=EMPTY),
    "cache_rotary": of(_cached_rotary, PAST, NOW, at=PASTS, bounds=EMPTY),
    "cache_positions": of(
        lambda m, past, x: x + m.table(torch.arange(past.shape[1], past.shape[1] + x.shape[1])), PAST, NOW,
        at=PASTS, bounds=EMPTY, table=lambda: nn.Embedding(400, 4)),
    "cache_of_the_last_8": of(lambda past, x: torch.cat([past, x], 1)[:, -8:], PAST, NOW, at=PASTS, bounds=EMPTY),
    "cache_attention_to_the_last_8": of(_cached_window, PAST, NOW, at=PASTS, bounds=EMPTY),
    "cache_without_the_oldest": of(
        lambda past, x: torch.cat([past, x], 1)[:, x.shape[1] :].tanh(), PAST, NOW, at=PASTS, bounds=EMPTY),
    "cache_of_a_convolution": of(_cached_convolution, floats(2, 4, "T"), floats(2, 4, 2),
        conv=lambda: nn.Conv1d(4, 3, 3)),
    "cache_ring": of(_ring, X, floats(2, 10, 4), at=(1, 6, 14)),
    "cache_ring_written": of(_ring_rolled, X, floats(2, 12, 4), at=(1, 3, 9)),
    "cache_last_state": of(
        lambda m, x, state: m.rnn(x, state), X, floats(1, 2, 3), rnn=lambda: nn.GRU(4, 3, batch_first=True)),
    "cache_size_as_number": of(
        lambda past, x: x * (past.shape[1] + x.shape[1]) + past.sum(), PAST, NOW, at=PASTS, bounds=EMPTY),
    "mask_from_arange_of_two": of(
        lambda past, x: torch.cat([past, x], 1) * (torch.arange(past.shape[1] + x.shape[1]) >= past.shape[1])[:, None],
        PAST, NOW, at=PASTS, bounds=EMPTY),
    "mask_of_future_positions": of(
        lambda past, x: x + torch.arange(past.shape[1], past.shape[1] + x.shape[1])[0] + x.shape[1] + 1, PAST, NOW,
        at=PASTS, bounds=EMPTY),
}  # fmt: skip

TWO: dict[str, SizesNet] = {
    "attention_across": of(lambda x, y: F.scaled_dot_product_attention(x, y, y), X, S, at=STEPS),
    "similarity": of(lambda x, y: torch.einsum("btc,bsc->bts", x, y), X, S, at=STEPS),
    "outer_sum": of(lambda x, y: (x[:, :, None] + y[:, None]).amax(2), X, S, at=STEPS),
    "joined_and_parted": of(lambda x, y: torch.cat([x, y], 1).tanh()[:, x.shape[1] :], X, S, at=STEPS),
    "einsum_one_batch": of(lambda x: torch.einsum("bhid,bhjd->bhij", x, x), floats("B", 2, "T", 4), at=STEPS),
    "einsum_classes": of(lambda m, x: torch.einsum("btc,ch->bth", x, m.w.weight), BT, at=STEPS, w=lambda: Table(4, 3)),
    "einsum_covariance": of(lambda x: torch.einsum("btc,btd->bcd", x, x), BT, at=STEPS),
    "einsum_ellipsis": of(lambda m, x: torch.einsum("...c,oc->...o", x, m.w.weight), BT, at=STEPS,
                          w=lambda: Table(3, 4)),
    "scores_flattened": of(lambda x: (x @ x.mT).flatten(1), BT, at=STEPS),
    "all_scores_flattened": of(lambda x: (x @ x.mT).flatten(), BT, at=STEPS),
    "batch_and_time_flattened": of(lambda m, x: m.out(x.flatten(0, 1)).unflatten(0, x.shape[:2]), BT, at=STEPS,
                                   out=lambda: nn.Linear(4, 3)),
    "batch_and_time_reshaped": of(lambda x: x.reshape(x.shape[0] * x.shape[1], 2, 2).mT.reshape(x.shape), BT, at=STEPS),
    "heads": of(
        lambda x: x.view(x.shape[0], x.shape[1], 2, 2).transpose(1, 2).softmax(-2).transpose(1, 2).reshape(x.shape), BT,
        at=STEPS),
    "token_for_each_batch": of(
        lambda m, x: torch.cat([m.token.weight.expand(x.shape[0], -1, -1), x], 1).mean(1), BT, at=STEPS,
        token=lambda: Table(1, 1, 4)),
    "time_first": of(lambda m, x: m.norm(x.transpose(0, 1)).transpose(0, 1), BT, at=STEPS,
        norm=lambda: nn.LayerNorm(4)),
    "batch_mean_subtracted": of(lambda x: x - x.mean(), BT, at=STEPS),
    "standardised": of(lambda x: (x - x.mean((0, 1))) / (x.std((0, 1), correction=0) + 1e-3), BT, at=STEPS),
    "transformer_layer": of(lambda m, x: m.layer(x), BT, at=STEPS,
                            layer=lambda: nn.TransformerEncoderLayer(4, 2, 6, batch_first=True)),
    "embedded_tokens": of(lambda m, x: m.table(x) + m.place.weight[: x.shape[1]], ints(9, "B", "T"), at=STEPS,
                          table=lambda: nn.Embedding(9, 4), place=lambda: Table(80, 4)),
    "embedded_casts": of(lambda m, x: m.table((x * 3).long().clamp(0, 8)) * 0.5, BT, at=STEPS,
                         table=lambda: nn.Embedding(9, 4)),
    "any_positive": of(lambda x: (x > 0).any(-1), BT, at=STEPS),
    "chosen_step": of(lambda x, y: x[:, y - 1] * 2, X, lengths("T")),
    "chosen_step_kept": of(lambda x, y: x.index_select(1, y[None] - 1) * 2, X, lengths("T")),
    "chosen_embedding": of(lambda m, x, y: x + m.table.weight[y], X, ints(9), table=lambda: nn.Embedding(9, 4)),
}  # fmt: skip
