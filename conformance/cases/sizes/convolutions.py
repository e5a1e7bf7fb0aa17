"""Convolutions, pooling, upsampling and recurrent nets after them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from conformance.cases.sizes.nets import BT, C, Function, Make, SizesNet, X, floats, of


def _conv(*sizes: int, channels: int = 4, **more: object) -> Make:
    return lambda: nn.Conv1d(4, channels, *sizes, **more)  # type: ignore[arg-type]


def _up(*sizes: int, **more: object) -> Make:
    return lambda: nn.ConvTranspose1d(4, 4, *sizes, **more)  # type: ignore[arg-type]


def _u_net(m: Function, x: Tensor) -> Tensor:
    """Return a net down and up again; the upsampled branch is cut to the length of the skipped one."""
    return m.up(m.down(x).relu())[..., : x.shape[2]] + x


def _u_net_padded(m: Function, x: Tensor) -> Tensor:
    """Return a net down and up again; the upsampled branch is padded to the length of the skipped one."""
    y = m.up(m.down(x).relu())
    return F.pad(y, (0, x.shape[2] - y.shape[2])) + x


def _resized_back(m: Function, x: Tensor) -> Tensor:
    return F.interpolate(m.down(x), size=x.shape[2]) + x


def _two_rates(m: Function, x: Tensor) -> Tensor:
    """Return the sum of a fine and a coarse branch."""
    coarse = m.coarse(F.avg_pool1d(x, 2, ceil_mode=True)).repeat_interleave(2, 2)
    return m.fine(x) + coarse[..., : x.shape[2]]


def _encoder(m: Function, x: Tensor) -> Tensor:
    """Strided convolutions as in front of a speech net."""
    return m.third(m.second(m.first(x).relu()).relu())


def _subsampling(m: Function, x: Tensor) -> Tensor:
    y = m.second(m.first(x[:, None]).relu()).relu()
    return m.out(y.transpose(1, 2).flatten(2))


def _dense(m: Function, x: Tensor) -> Tensor:
    return torch.cat([m.three(x), m.five(x), F.max_pool1d(x, 3, 1, 1)], 1)


def _per_frame(m: Function, x: Tensor) -> Tensor:
    """Run a recurrent net over the features of each step, with a batch of B * T."""
    steps = x.flatten(0, 1)[:, :, None]
    return m.rnn(steps)[0][:, -1].unflatten(0, (x.shape[0], -1))


def _per_frame_strided(m: Function, x: Tensor) -> Tensor:
    return _per_frame(m, m.conv(x.mT).mT)


def _dual_path(m: Function, x: Tensor) -> Tensor:
    """Over time for each band, then over bands for each step: [B, T, F, C]."""
    bands = x.transpose(1, 2)
    y = m.time(bands.flatten(0, 1))[0].unflatten(0, bands.shape[:2]).transpose(1, 2)
    return m.band(y.flatten(0, 1))[0].unflatten(0, y.shape[:2])


def _pool_then_mask(x: Tensor) -> Tensor:
    pooled = F.max_pool1d(x, 2, 2, ceil_mode=True)
    return pooled * (torch.arange(pooled.shape[2]) % 2)


def _gru(size: int = 4, hidden: int = 3, **more: object) -> Make:
    return lambda: nn.GRU(size, hidden, batch_first=True, **more)  # type: ignore[arg-type]


CONVOLUTIONS: dict[str, SizesNet] = {
    "conv_same": of(lambda m, x: m.conv(x), C, conv=_conv(3, padding=1)),
    "conv_valid": of(lambda m, x: m.conv(x), C, at=(3, 5, 12), conv=_conv(3)),
    "conv_strided": of(lambda m, x: m.conv(x), C, conv=_conv(3, 2, 1)),
    "conv_strided_by_three": of(lambda m, x: m.conv(x), C, conv=_conv(5, 3, 2)),
    "conv_strided_even_kernel": of(lambda m, x: m.conv(x), C, at=(2, 5, 12), conv=_conv(4, 2, 1)),
    "conv_patches": of(lambda m, x: m.conv(x), C, at=(4, 7, 12), conv=_conv(4, 4)),
    "conv_point_strided": of(lambda m, x: m.conv(x), C, conv=_conv(1, 2)),
    "conv_dilated": of(lambda m, x: m.conv(x), C, conv=_conv(3, padding=4, dilation=4)),
    "conv_depthwise": of(lambda m, x: m.conv(x), C, conv=_conv(7, padding=3, groups=4)),
    "conv_same_even": of(lambda m, x: m.conv(x), C, conv=_conv(4, padding="same")),
    "conv_reflected": of(lambda m, x: m.conv(x), C, at=(3, 5, 12), conv=_conv(5, padding=2, padding_mode="reflect")),
    "conv_around": of(lambda m, x: m.conv(x), C, at=(2, 5, 12), conv=_conv(3, padding=1, padding_mode="circular")),
    "conv_batch_and_time": of(lambda m, x: m.conv(x.mT), BT, at=((1, 1), (2, 5), (3, 12)), conv=_conv(3, 2, 1)),
    "conv_chomped": of(lambda m, x: m.conv(x)[..., :-4] + x, C, conv=_conv(3, padding=4, dilation=2)),
    "conv_residual_cropped": of(lambda m, x: m.conv(x) + x[..., 2:-2], C, at=(5, 7, 12), conv=_conv(5)),
    "conv_residual_strided": of(lambda m, x: m.conv(x) + m.skip(x), C, conv=_conv(3, 2, 1), skip=_conv(1, 2)),
    "conv_stack": of(_encoder, C, at=(19, 22, 40), first=_conv(5, 3), second=_conv(3, 2), third=_conv(2, 2)),
    "conv_dense": of(_dense, C, three=_conv(3, padding=1), five=_conv(5, padding=2)),
    "conv_two_rates": of(_two_rates, C, coarse=_conv(3, padding=1), fine=_conv(3, padding=1)),
    "conv_subsampling": of(_subsampling, floats(2, "T", 9), at=(7, 9, 16), first=lambda: nn.Conv2d(1, 3, 3, 2),
                           second=lambda: nn.Conv2d(3, 3, 3, 2), out=lambda: nn.Linear(3, 5)),
    "conv_transposed": of(lambda m, x: m.up(x), C, up=_up(4, 2, 1)),
    "conv_transposed_output_padding": of(lambda m, x: m.up(x), C, up=_up(3, 2, 1, output_padding=1)),
    "conv_transposed_small_kernel": of(lambda m, x: m.up(x), C, up=_up(1, 2)),
    "conv_transposed_gaps": of(lambda m, x: m.up(x), C, up=_up(2, 3)),
    "conv_transposed_grouped": of(lambda m, x: m.up(x), C, up=_up(3, 2, groups=2)),
    "conv_transposed_cropped": of(lambda m, x: m.up(x)[..., 1:-1], C, up=_up(4, 2)),
    "u_net_cropped": of(_u_net, C, down=_conv(3, 2, 1), up=_up(2, 2)),
    "u_net_padded": of(_u_net_padded, C, at=(2, 5, 12), down=_conv(2, 2), up=_up(2, 2)),
    "u_net_resized": of(_resized_back, C, down=_conv(3, 2, 1)),
}  # fmt: skip

POOLS: dict[str, SizesNet] = {
    "max_pool": of(lambda x: F.max_pool1d(x, 2), C, at=(2, 5, 12)),
    "max_pool_padded": of(lambda x: F.max_pool1d(x, 3, 2, 1), C),
    "max_pool_ceil": of(lambda x: F.max_pool1d(x, 2, 2, ceil_mode=True), C),
    "max_pool_ceil_padded": of(lambda x: F.max_pool1d(x, 3, 2, 1, ceil_mode=True), C),
    "max_pool_ceil_by_three": of(lambda x: F.max_pool1d(x, 2, 3, ceil_mode=True), C),
    "max_pool_ceil_point": of(lambda x: F.max_pool2d(x[:, None], 1, 2, 0, 1, True), C, at=(1, 6, 9)),
    "size_of_max_pool_ceil": of(
        lambda x: torch.arange(F.max_pool2d(x[:, None], (4, 1), 2, (2, 0), 1, True).shape[3]) * x.sum(), C,
        at=(1, 6, 9)),
    "max_pool_ceil_masked": of(_pool_then_mask, C, at=(1, 6, 9)),
    "avg_pool": of(lambda x: F.avg_pool1d(x, 3, 2, 1), C),
    "avg_pool_ceil": of(lambda x: F.avg_pool1d(x, 2, 2, ceil_mode=True), C),
    "avg_pool_ceil_padded": of(lambda x: F.avg_pool1d(x, 3, 2, 1, ceil_mode=True), C),
    "avg_pool_inside": of(lambda x: F.avg_pool1d(x, 3, 2, 1, count_include_pad=False), C),
    "avg_pool_ceil_inside": of(lambda x: F.avg_pool1d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), C),
    "power_pool": of(lambda x: F.lp_pool1d(x, 2, 3, 2), C, at=(3, 5, 12)),
    "global_pool": of(lambda x: F.adaptive_avg_pool1d(x, 1)[..., 0], C),
    "global_max_pool": of(lambda x: F.adaptive_max_pool1d(x, 1)[..., 0], C),
    "statistics_of_the_pool": of(lambda x: F.avg_pool1d(x, 2, 2, ceil_mode=True).std(2, correction=0), C),
    "pool_and_repeat": of(
        lambda x: F.max_pool1d(x, 2, 2, ceil_mode=True).repeat_interleave(2, 2)[..., : x.shape[2]] - x, C),
}  # fmt: skip

UPSAMPLING: dict[str, SizesNet] = {
    "upsample_twice": of(lambda x: F.interpolate(x, scale_factor=2), C),
    "upsample_linear": of(lambda x: F.interpolate(x, scale_factor=2, mode="linear"), C),
    "upsample_to_twice_the_size": of(lambda x: F.interpolate(x, size=2 * x.shape[2]), C),
    "upsample_to_the_size_of_the_other": of(
        lambda x, y: F.interpolate(x, size=2 * y.shape[2]) * F.interpolate(y, scale_factor=2), C, C),
    "upsample_by_indices": of(lambda x: x[:, torch.arange(2 * x.shape[1]) // 2], X),
    "downsample_to_half_the_size": of(lambda x: F.interpolate(x, size=x.shape[2] // 2), C, at=(2, 6, 9)),
    "expand_by_a_size": of(lambda x: x.mean(1, keepdim=True).expand(-1, 2 * x.shape[1], -1), X),
    "expand_to_two_sizes": of(lambda x: x[:, :1, :1].expand(x.shape[0], x.shape[1], 3) * 2, BT,
        at=((1, 1), (2, 5), (3, 9))),
    "repeat_by_a_size": of(lambda x: x[:, :1].repeat(1, x.shape[1], 1) + x, X),
}  # fmt: skip

RECURRENT: dict[str, SizesNet] = {
    "gru": of(lambda m, x: m.rnn(x)[0], BT, at=((1, 1), (2, 5), (3, 12)), rnn=_gru()),
    "gru_both_ways_last_step": of(lambda m, x: m.rnn(x)[0][:, -1], X, rnn=_gru(bidirectional=True)),
    "gru_behind_a_strided_convolution": of(lambda m, x: m.rnn(m.conv(x).mT)[0], C, rnn=_gru(), conv=_conv(3, 2, 1)),
    "gru_with_a_first_state": of(
        lambda m, x: m.rnn(x, torch.ones(1, x.shape[0], 3)), BT, at=((1, 1), (2, 5), (3, 12)), rnn=_gru()),
    "gru_over_the_last_12": of(lambda m, x: m.rnn(x[:, -12:])[1], X, at=(1, 6, 15), rnn=_gru()),
    "gru_of_the_multiple": of(lambda m, x: m.rnn(x[:, : x.shape[1] // 4 * 4])[0], X, at=(4, 7, 13), rnn=_gru()),
    "gru_per_frame": of(_per_frame, X, rnn=_gru(1)),
    "gru_per_frame_strided": of(_per_frame_strided, X, rnn=_gru(1), conv=_conv(3, 2, 1)),
    "gru_per_frame_batch_and_time": of(_per_frame, BT, at=((1, 1), (2, 5), (3, 12)), rnn=_gru(1)),
    "lstm_per_pair": of(
        lambda m, x: m.rnn(x[:, : x.shape[1] // 2 * 2].reshape(-1, 2, 4))[0], X, at=(2, 5, 12),
        rnn=lambda: nn.LSTM(4, 3, batch_first=True)),
    "lstm_every_second_step_as_batch": of(
        lambda m, x: m.rnn(x[:, ::2].flatten(0, 1)[:, None])[0], X, rnn=lambda: nn.LSTM(4, 3, batch_first=True)),
    "rnn_half_the_steps_as_batch": of(
        lambda m, x: m.rnn(x[0, : x.shape[1] // 2, None])[0], X, at=(2, 5, 12),
        rnn=lambda: nn.RNN(4, 3, batch_first=True)),
    "dual_path": of(_dual_path, floats(2, "T", 5, 3), time=_gru(3, 3), band=_gru(3, 3)),
}  # fmt: skip
