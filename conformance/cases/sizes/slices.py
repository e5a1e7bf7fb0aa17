"""Crops, pieces and selections along a dynamic axis."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from conformance.cases.sizes.nets import BT, C, Function, S, SizesNet, Table, X, floats, of


def _fill_steps(x: Tensor, steps: slice, value: float = 0.5) -> Tensor:
    y = x.clone()
    y[:, steps] = value
    return y


def _shifted_after_a_write(x: Tensor) -> Tensor:
    y = x.clone()
    y[:, 2:] = 0.5
    y[:, :-1] = y[:, 1:] * 2
    return y


def _both_cropped(x: Tensor, y: Tensor) -> Tensor:
    shorter = min(x.shape[1], y.shape[1])
    return x[:, :shorter] * y[:, :shorter]


def _last_of_min(x: Tensor) -> Tensor:
    count = min(x.shape[1], 4)
    return x.narrow(1, x.shape[1] - count, count).tanh()


def _centre(x: Tensor) -> Tensor:
    """Return the middle 8 steps, all of them where there are fewer."""
    start = max(0, (x.shape[1] - 8) // 2)
    return x[:, start : start + 8] * 2


def _running_mean(x: Tensor) -> Tensor:
    """Return a running mean over 4 steps from the running sum."""
    total = F.pad(x.cumsum(1), (0, 0, 4, 0))
    return (total[:, 4:] - total[:, :-4]) / 4


def _ends(x: Tensor) -> Tensor:
    return torch.cat([x[:, :4], x[:, -4:]], 1)


def _shifted_right(m: Function, x: Tensor) -> Tensor:
    """Return the input of a decoder in training: a start token, and all but the last step."""
    return torch.cat([m.start.weight.expand(x.shape[0], 1, 4), x[:, :-1]], 1)


def _linear() -> nn.Module:
    return nn.Linear(4, 4)


CROPS: dict[str, SizesNet] = {
    "crop_first_16": of(lambda x: x[:, :16] * 2, X, at=(1, 10, 23)),
    "crop_linear_mean": of(lambda m, x: m.lin(x[:, :16]).mean(1), X, at=(1, 10, 23), lin=_linear),
    "crop_first_64": of(lambda x: x[:, :64] * 2, X, at=(1, 10, 68)),
    "crop_last_64": of(lambda x: x[:, -64:] * 2, X, at=(1, 10, 68)),
    "crop_channels_first": of(lambda x: x[..., :16].relu(), C, at=(1, 10, 23)),
    "first_three": of(lambda x: x[:, :3].tanh(), X, at=(1, 2, 6)),
    "last_three": of(lambda x: x[:, -3:].tanh(), X, at=(1, 2, 6)),
    "all_but_the_last_three": of(lambda x: x[:, :-3].tanh(), X, at=(1, 2, 6)),
    "from_the_third": of(lambda x: x[:, 3:].tanh(), X, at=(1, 2, 6)),
    "without_two_at_both_ends": of(lambda x: x[:, 2:-2].tanh(), X, at=(1, 3, 9)),
    "one_to_four": of(lambda x: x[:, 1:4].tanh(), X, at=(1, 3, 9)),
    "third_last_to_last": of(lambda x: x[:, -3:-1].tanh(), X, at=(1, 2, 9)),
    "shifted_after_a_write": of(_shifted_after_a_write, X, at=(1, 2, 8)),
    "crop_of_a_crop": of(lambda x: x[:, 2:][:, :5].tanh(), X, at=(1, 4, 12)),
    "crop_of_a_tail": of(lambda x: x[:, -10:][:, :4].tanh(), X, at=(1, 6, 14)),
    "crop_two_symbols": of(lambda x: x[:3, :5].tanh(), BT, at=((1, 1), (2, 4), (5, 9))),
    "crop_before_and_after": of(
        lambda m, x: m.lin(x[:, :32])[:, :8].tanh(), X, at=(1, 20, 40), lin=_linear
    ),
    "crop_by_min": of(lambda x: x[:, : min(x.shape[1], 64)] * 2, X, at=(1, 10, 68)),
    "crop_by_min_twice": of(lambda x: x[:, : min(x.shape[1], 16)][:, : min(x.shape[1], 8)] * 2, X, at=(1, 12, 20)),
    "crop_in_the_middle": of(_centre, X, at=(1, 5, 13)),
    "two_in_the_middle": of(
        lambda x: x[:, (x.shape[1] - 2) // 2 : (x.shape[1] - 2) // 2 + 2].tanh(), X, at=(2, 5, 12)
    ),
    "middle_half": of(lambda x: x[:, x.shape[1] // 4 : -(x.shape[1] // 4)].tanh(), X, at=(4, 7, 12)),
    "first_half": of(lambda x: x[:, : x.shape[1] // 2].tanh(), X),
    "second_half": of(lambda x: x[:, x.shape[1] // 2 :].tanh(), X),
    "halves_swapped": of(lambda x: torch.cat([x[:, x.shape[1] // 2 :], x[:, : x.shape[1] // 2]], 1), X),
    "heads_and_tails_added": of(lambda x: x[:, :16] + x[:, -16:], X, at=(1, 10, 23)),
    "head_and_tail_joined": of(_ends, X, at=(1, 3, 9)),
    "head_changed": of(lambda x: torch.cat([x[:, :3].tanh(), x[:, 3:]], 1), X, at=(1, 2, 9)),
    "head_mean_subtracted": of(lambda x: x - x[:, :10].mean(1, keepdim=True), X, at=(1, 6, 15)),
    "tail_statistics": of(
        lambda x: torch.cat([x[:, -16:].mean(1), x[:, -16:].var(1, correction=0)], 1), X, at=(1, 10, 20)
    ),
    "crop_flipped": of(lambda x: x[:, :6].flip(1), X, at=(1, 4, 9)),
    "crop_attention": of(
        lambda x: F.scaled_dot_product_attention(x[:, :12], x[:, -12:], x[:, -12:]), X, at=(1, 8, 15)
    ),
    "crop_positions": of(lambda m, x: x[:, :16] + m.table.weight[: min(x.shape[1], 16)], X, at=(1, 9, 20),
                         table=lambda: Table(16, 4)),
    "crop_recurrent": of(
        lambda m, x: m.rnn(x[:, :12])[0], X, at=(1, 8, 15), rnn=lambda: nn.GRU(4, 3, batch_first=True)
    ),
    "crop_convolution": of(lambda m, x: m.conv(x[..., :20]), C, at=(3, 11, 24), conv=lambda: nn.Conv1d(4, 3, 3)),
    "crop_to_a_transform": of(lambda x: torch.fft.rfft(x, n=5, dim=1).abs(), X, at=(1, 3, 5, 9)),
    "crop_to_a_transform_of_two_axes": of(lambda x: torch.fft.fft2(x, s=(6, -1)).real, X, at=(1, 4, 9)),
    "crop_a_mask": of(lambda x: x * (torch.arange(x.shape[1]) < 8)[:, None], X, at=(1, 5, 12)),
}  # fmt: skip

PIECES: dict[str, SizesNet] = {
    "last_step": of(lambda x: x[:, -1] * 2, X),
    "last_step_kept": of(lambda x: x[:, -1:] * 2, X),
    "first_step": of(lambda x: x[:, 0] * 2, X),
    "third_step": of(lambda x: x[:, 2] * 2, X, at=(3, 5, 12)),
    "third_last_step": of(lambda x: x[:, -3] * 2, X, at=(3, 5, 12)),
    "selected_step": of(lambda x: x.select(1, x.shape[1] // 2) * 2, X),
    "narrow_to_the_minimum": of(lambda x: x.narrow(1, 0, min(x.shape[1], 4)) * 2, X, at=(1, 2, 9)),
    "narrow_the_last": of(_last_of_min, X, at=(1, 2, 9)),
    "narrow_the_rest": of(lambda x: x.narrow(1, 1, x.shape[1] - 1) * 2, X, at=(2, 3, 9)),
    "narrow_half": of(lambda x: x.narrow(1, x.shape[1] // 4, x.shape[1] // 2) * 2, X),
    "split_first": of(lambda x: x.split(3, 1)[0] * 2, X, at=(1, 2, 9)),
    "split_last": of(lambda x: x.split(3, 1)[-1] * 2, X, at=(1, 2, 9), decides=True),
    "split_at_half": of(lambda x: torch.cat(x.split([x.shape[1] // 2, x.shape[1] - x.shape[1] // 2], 1)[::-1], 1), X),
    "split_off_one": of(lambda x: x.split([1, x.shape[1] - 1], 1)[1] * 2, X, at=(1, 2, 9)),
    "split_off_four": of(lambda x: x.split([4, x.shape[1] - 4], 1)[0] * 2, X, at=(4, 5, 12)),
    "chunk_first": of(lambda x: x.chunk(2, 1)[0] * 2, X, at=(1, 2, 9)),
    "chunk_second": of(lambda x: x.chunk(2, 1)[1] * 2, X, at=(2, 5, 12)),
    "chunk_two_swapped": of(lambda x: torch.cat(x.chunk(2, 1)[::-1], 1), X, decides=True),
    "chunk_three_joined": of(lambda x: torch.cat([c.tanh() for c in x.chunk(3, 1)], 1), X, at=(1, 4, 12), decides=True),
    "chunk_of_features": of(lambda x: x.chunk(2, -1)[0] * x.chunk(2, -1)[1].sigmoid(), X),
    "tensor_split_two": of(lambda x: torch.cat(x.tensor_split(2, 1)[::-1], 1), X),
    "tensor_split_three": of(lambda x: torch.cat(x.tensor_split(3, 1)[::-1], 1), X),
    "tensor_split_at_places": of(lambda x: torch.cat(x.tensor_split([2, 5], 1)[::-1], 1), X, at=(1, 4, 12)),
    "every_second": of(lambda x: x[:, ::2] * 2, X),
    "every_third_from_one": of(lambda x: x[:, 1::3] * 2, X),
    "every_second_of_the_first_16": of(lambda x: x[:, :16:2] * 2, X, at=(1, 9, 20)),
    "every_third_between": of(lambda x: x[:, 2:20:3] * 2, X, at=(3, 9, 25)),
    "odd_times_even": of(lambda x: x[:, 1::2] * x[:, ::2][:, : x.shape[1] // 2], X),
    "odd_and_even_stacked": of(
        lambda x: torch.stack([x[:, : x.shape[1] // 2 * 2 : 2], x[:, 1::2]], 2).flatten(1, 2), X
    ),
    "roll_one": of(lambda x: x.roll(1, 1), X),
    "roll_three": of(lambda x: x.roll(3, 1), X, at=(1, 2, 9)),
    "roll_back_two": of(lambda x: x.roll(-2, 1), X, at=(1, 2, 9)),
    "roll_by_half": of(lambda x: x.roll(x.shape[1] // 2, 1), X),
    "differences": of(lambda x: x[:, 1:] - x[:, :-1], X),
    "second_differences": of(lambda x: x[:, 2:] - 2 * x[:, 1:-1] + x[:, :-2], X, at=(2, 3, 9)),
    "shifted_right": of(_shifted_right, X, start=lambda: Table(1, 1, 4)),
    "written_at_the_start": of(lambda x: _fill_steps(x, slice(0, 3)), X, at=(1, 2, 9)),
    "written_at_the_end": of(lambda x: _fill_steps(x, slice(-2, None)), X, at=(1, 2, 9)),
    "written_between": of(lambda x: _fill_steps(x, slice(2, 5)), X, at=(1, 4, 9)),
    "smoothed_by_sums": of(_running_mean, X, at=(1, 3, 9)),
    "both_cropped_to_the_shorter": of(_both_cropped, X, S, at=((1, 1), (4, 7), (9, 5))),
    "cropped_to_the_other": of(lambda x, y: x[:, : y.shape[1]].sum(1) + y.sum(1), X, S, at=((1, 1), (4, 7), (9, 5))),
    "step_of_the_other": of(
        lambda x, y: x[:, y.shape[1] - 1 : y.shape[1]].sum(1) + y.sum(1), X, S, at=((1, 1), (4, 7), (9, 5))
    ),
    "first_of_the_batch": of(lambda x: x[:3].tanh(), floats("B", 5, 4), at=(1, 2, 9)),
    "largest_of_at_most_three": of(lambda x: x.topk(min(3, x.shape[1]), 1)[0], X, at=(1, 2, 9)),
}  # fmt: skip
