"""Padding to a length, to a multiple, to the longer input; windows, frames and stacking."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from conformance.cases.sizes.nets import C, Function, Make, S, SizesNet, Table, X, floats, of


def _steps(x: Tensor, before: int, after: int) -> Tensor:
    """Padded along axis 1 of three."""
    return F.pad(x, (0, 0, before, after))


def _conv(stride: int = 1, kernel: int = 3, padding: int = 0) -> Make:
    return lambda: nn.Conv1d(4, 4, kernel, stride, padding)


def _with_token(m: Function, x: Tensor) -> Tensor:
    return torch.cat([m.token.weight.expand(x.shape[0], -1, -1), x], 1)


BEFORE: dict[str, tuple[Callable[[Function, Tensor], Tensor], dict[str, Make], int]] = {
    "T": (lambda m, x: x * 1, {}, 1),
    "strided_convolution": (lambda m, x: m.first(x.mT).mT, {"first": _conv(2, 3, 1)}, 1),
    "two_strided_convolutions": (lambda m, x: m.second(m.first(x.mT)).mT,
                                 {"first": _conv(2, 3, 1), "second": _conv(2, 3, 1)}, 1),
    "valid_convolution": (lambda m, x: m.first(x.mT).mT, {"first": _conv()}, 3),
    "upsampling": (lambda m, x: m.first(x.mT).mT, {"first": lambda: nn.ConvTranspose1d(4, 4, 2, 2)}, 1),
    "token": (_with_token, {"token": lambda: Table(1, 1, 4)}, 1),
    "doubled_and_token": (lambda m, x: _with_token(m, torch.cat([x, x], 1)), {"token": lambda: Table(1, 1, 4)}, 1),
}  # fmt: skip
"""What is done before the padding: the computed size is T, (T+1)/2, (T+3)/4, T-2, 2T, T+1 and 2T+1. Its layers, and
the first size at which it runs."""


def _multiple(before: Callable[[Function, Tensor], Tensor], size: int) -> Callable[..., Tensor]:
    def windows(m: Function, x: Tensor) -> Tensor:
        y = before(m, x)
        return _steps(y, 0, -y.shape[1] % size).unflatten(1, (-1, size)).mean(2)

    return windows if before is not BEFORE["T"][0] else lambda x: windows(None, x)  # type: ignore[arg-type]


def _padded_window_attention(x: Tensor) -> Tensor:
    """Attention within windows of 4 steps; what was padded is cut off again."""
    size = x.shape[1]
    windows = _steps(x, 0, (4 - size % 4) % 4).unflatten(1, (-1, 4)).flatten(0, 1)
    mixed = F.scaled_dot_product_attention(windows, windows, windows)
    return mixed.unflatten(0, (x.shape[0], -1)).flatten(1, 2)[:, :size]


def _windows_of_a_multiple(x: Tensor) -> Tensor:
    count = x.shape[1] // 4
    return x[:, : count * 4].reshape(x.shape[0], count, 4, 4).amax(2)


def _same_padding(m: Function, x: Tensor) -> Tensor:
    """Pad as TensorFlow does for a convolution of kernel 5 and stride 2."""
    size = x.shape[2]
    padding = max((-(-size // 2) - 1) * 2 + 5 - size, 0)
    return m.conv(F.pad(x, (padding // 2, padding - padding // 2)))


def _longer(x: Tensor, y: Tensor) -> Tensor:
    size = max(x.shape[1], y.shape[1])
    return _steps(x, 0, size - x.shape[1]) + _steps(y, 0, size - y.shape[1])


def _to_the_other(x: Tensor, y: Tensor) -> Tensor:
    """Padded or cut to the length of y."""
    return _steps(x, 0, max(0, y.shape[1] - x.shape[1]))[:, : y.shape[1]] * y


def _centre(x: Tensor) -> Tensor:
    """At most 24 steps, zeros around them."""
    steps = x[:, :24]
    free = 24 - min(x.shape[1], 24)
    return _steps(steps, free // 2, free - free // 2)


def _low_frame_rate(x: Tensor) -> Tensor:
    """Frames of 5 steps every 3, the first step repeated in front."""
    padded = torch.cat([x[:, :1].expand(-1, 2, -1), x, x[:, -1:].expand(-1, 2, -1)], 1)
    return padded.unfold(1, 5, 3).flatten(2)


def _context(x: Tensor) -> Tensor:
    padded = _steps(x, 1, 1)
    return torch.cat([padded[:, :-2], x, padded[:, 2:]], -1)


def _stack_steps(x: Tensor) -> Tensor:
    return x[:, : x.shape[1] // 3 * 3].reshape(x.shape[0], -1, 12)


def _pyramid(x: Tensor) -> Tensor:
    for _ in range(2):
        x = x[:, : x.shape[1] // 2 * 2].unflatten(1, (-1, 2)).flatten(2)
    return x.tanh()


def _pair_means(x: Tensor) -> Tensor:
    half = x.shape[1] // 2
    return x[:, : 2 * half].reshape(x.shape[0], half, 2, 4).mean(2)


def _spectrum(m: Function, x: Tensor) -> Tensor:
    """Energies of frames of 8 samples every 4."""
    frames = x.unfold(1, 8, 4) * m.window.weight
    return (frames @ m.basis.weight).square()


def _stft(x: Tensor) -> Tensor:
    spectrum = torch.stft(x, 8, 4, window=torch.hann_window(8), center=True, return_complex=True)
    return spectrum.abs()


def _overlap_add(x: Tensor) -> Tensor:
    """Frames of 4 every 2, added up: [B, F, 4] to [B, 2 F + 2]."""
    first, second = x[..., :2].flatten(1), x[..., 2:].flatten(1)
    return F.pad(first, (0, 2)) + F.pad(second, (2, 0))


PADS: dict[str, SizesNet] = {
    "pad_right": of(lambda x: _steps(x, 0, 3).tanh(), X),
    "pad_left_causal": of(lambda m, x: m.conv(F.pad(x, (4, 0))), C, conv=lambda: nn.Conv1d(4, 3, 3, dilation=2)),
    "pad_with_a_value": of(lambda x: F.pad(x, (0, 0, 2, 1), value=-1.5), X),
    "pad_negative": of(lambda x: F.pad(x, (-1, -2)).tanh(), C, at=(4, 5, 12)),
    "pad_one_side_cut_the_other": of(lambda x: F.pad(x, (-1, 1)).tanh(), C),
    "pad_reflect": of(lambda x: F.pad(x, (2, 1), mode="reflect"), C, at=(3, 5, 12)),
    "pad_replicate": of(lambda x: F.pad(x, (2, 1), mode="replicate"), C),
    "pad_circular": of(lambda x: F.pad(x, (2, 1), mode="circular"), C, at=(2, 5, 12)),
    "pad_to_at_least_64": of(lambda x: _steps(x, 0, max(0, 64 - x.shape[1])).tanh(), X, at=(1, 10, 68)),
    "pad_then_cut_to_64": of(lambda x: _steps(x, 0, max(0, 64 - x.shape[1]))[:, :64].tanh(), X, at=(1, 10, 68)),
    "pad_or_trim_flatten_linear": of(
        lambda m, x: m.out(_steps(x, 0, max(0, 16 - x.shape[1]))[:, :16].flatten(1)), X, at=(1, 10, 23),
        out=lambda: nn.Linear(64, 5)),
    "pad_by_constant_then_trim": of(lambda x: _steps(x, 0, 16)[:, :16].tanh(), X, at=(1, 10, 23)),
    "pad_by_constant_trim_flatten_linear": of(
        lambda m, x: m.out(_steps(x, 0, 16)[:, :16].flatten(1)), X, at=(1, 10, 23), out=lambda: nn.Linear(64, 5)),
    "pad_left_or_trim": of(lambda x: _steps(x, 16, 0)[:, -16:].tanh(), X, at=(1, 10, 23)),
    "pad_to_the_centre": of(_centre, X, at=(1, 10, 30)),
    "pad_to_even": of(lambda x: _steps(x, 0, x.shape[1] % 2).tanh(), X, at=(1, 6, 9)),
    "pad_to_a_multiple_and_back": of(
        lambda x: _steps(x, 0, -x.shape[1] % 8).tanh()[:, : x.shape[1]], X, at=(1, 8, 13)),
    "pad_to_a_multiple_of_8_convolution": of(
        lambda m, x: m.conv(F.pad(x, (0, -x.shape[2] % 8))), C, at=(1, 8, 13), conv=lambda: nn.Conv1d(4, 3, 8, 8)),
    "pad_as_tensorflow": of(_same_padding, C, at=(1, 6, 13), conv=lambda: nn.Conv1d(4, 3, 5, 2)),
    "pad_both_to_the_longer": of(_longer, X, S, at=((1, 1), (4, 7), (9, 5))),
    "pad_or_cut_to_the_other": of(_to_the_other, X, S, at=((1, 1), (4, 7), (9, 5))),
    "pad_batch_to_four": of(lambda x: F.pad(x, (0, 0, 0, 0, 0, -x.shape[0] % 4)).tanh(), floats("B", 3, 4),
        at=(1, 4, 6)),
    **{f"multiple_of_{k}_after_{name}": of(_multiple(before, k), X, at=(first, 7, 12), **layers)
       for name, (before, layers, first) in BEFORE.items() for k in (4, 5)},
}  # fmt: skip

WINDOWS: dict[str, SizesNet] = {
    "windows_attention_padded": of(_padded_window_attention, X, at=(1, 8, 13)),
    "windows_of_the_multiple_only": of(_windows_of_a_multiple, X, at=(4, 7, 13)),
    "windows_of_three": of(lambda x: x.unfold(1, 3, 1).sum(-1), X, at=(3, 5, 12)),
    "windows_of_three_every_two": of(lambda x: x.unfold(1, 3, 2) * 2, X, at=(3, 6, 13)),
    "windows_of_four_disjoint": of(lambda x: x.unfold(1, 4, 4).mean(-1), X, at=(4, 7, 13)),
    "windows_of_five_every_three_padded": of(lambda x: _steps(x, 2, 2).unfold(1, 5, 3).amax(-1), X, at=(1, 6, 13)),
    "windows_by_strides": of(lambda x: x.as_strided((x.shape[0] // 4, 3), (4, 1)).tanh(), floats("T"), at=(4, 9, 18)),
    "windows_by_im2col": of(lambda x: F.unfold(x[:, :, None], (1, 3), padding=(0, 1)), C, at=(1, 5, 12)),
    "frames_stacked_by_three": of(_stack_steps, X, at=(3, 7, 12)),
    "frames_stacked_unflatten": of(lambda x: x[:, : x.shape[1] // 3 * 3].unflatten(1, (-1, 3)).flatten(2) * 2, X,
                                   at=(3, 7, 12)),
    "frames_stacked_linear": of(lambda m, x: m.out(_stack_steps(x)), X, at=(3, 7, 12), out=lambda: nn.Linear(12, 5)),
    "frames_stacked_after_convolution": of(lambda m, x: _stack_steps(m.conv(x).mT), C, at=(5, 9, 16),
                                           conv=lambda: nn.Conv1d(4, 4, 3, 2, 1)),
    "frames_at_low_rate": of(_low_frame_rate, X, at=(1, 7, 12)),
    "frames_with_context": of(_context, X),
    "frames_with_context_valid": of(lambda x: torch.cat([x[:, :-2], x[:, 1:-1], x[:, 2:]], -1), X, at=(3, 5, 12)),
    "frames_added_up": of(_overlap_add, floats(2, "F", 4)),
    "frames_of_samples": of(_spectrum, floats(2, "T"), at=(8, 13, 30), window=lambda: Table(8),
        basis=lambda: Table(8, 5)),
    "spectrogram": of(_stft, floats(2, "T"), at=(5, 13, 30)),
    "pyramid_of_pairs": of(_pyramid, X, at=(4, 9, 14)),
    "pair_means": of(_pair_means, X, at=(2, 5, 12)),
    "pair_maxima": of(lambda x: torch.maximum(x[:, ::2][:, : x.shape[1] // 2], x[:, 1::2]), X, at=(2, 5, 12)),
    "twice_as_many_steps": of(lambda x: x.reshape(x.shape[0], x.shape[1] * 2, 2).tanh(), X),
    "steps_repeated": of(lambda x: x.repeat_interleave(2, 1)[:, 1:], X),
    "steps_repeated_and_cut": of(
        lambda x: x[:, ::2].repeat_interleave(2, 1)[:, : x.shape[1]] - x, X, at=(1, 6, 9)),
    "moving_average": of(lambda x: F.avg_pool1d(x, 5, 1, 2), C, at=(1, 4, 9)),
    "local_mask": of(
        lambda x: (x @ x.mT).masked_fill((torch.arange(x.shape[1])[:, None] - torch.arange(x.shape[1])).abs() > 3, -9.0)
        .softmax(-1) @ x, X, at=(1, 3, 9)),
}  # fmt: skip
