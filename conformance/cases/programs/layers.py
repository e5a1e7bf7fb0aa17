"""Layers of kinds that the suite `layers` has not: states of recurrent nets, attention with masks, spectra, float16."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from conformance.cases.programs.program import Program, numbers, program


class _WithStates(nn.Module):
    """A recurrent net whose states are inputs and outputs."""

    def __init__(self, net: nn.RNNBase) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor, *states: Tensor) -> Any:
        return self.net(x, states if len(states) > 1 else states[0])


class _LastState(nn.Module):
    """The last hidden state alone, of a net that runs both ways."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.LSTM(4, 3, num_layers=2, bidirectional=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)[1][0]


class _SharedNet(nn.Module):
    """One net for two inputs of other lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.LSTM(4, 3, batch_first=True)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.cat((self.net(x)[0], self.net(y)[0]), 1)


class _SqueezeExcitation(nn.Module):
    """Gains of the channels of a signal, by its mean over time, through convolutions of two axes."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(6, 2, 1), nn.Conv2d(2, 6, 1)

    def forward(self, x: Tensor) -> Tensor:
        gains = x.mean(-1, keepdim=True).unsqueeze(-1)
        return x * torch.sigmoid(self.up(torch.relu(self.down(gains)))).squeeze(-1)


class _Attention(nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(8, 2, **options)

    def forward(self, query: Tensor, key: Tensor, mask: Tensor | None = None) -> Any:
        return self.inner(query, key, key, attn_mask=mask)


class _RelativePositions(nn.Module):
    """Sines and cosines of positions, written into every other column of a table."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rates", torch.exp(torch.arange(0, 6, 2) * -0.7))

    def forward(self, x: Tensor) -> Tensor:
        table = torch.zeros(x.shape[1], 6)
        position = torch.arange(x.shape[1]).unsqueeze(1)
        table[:, 0::2] = torch.sin(position * self.rates)
        table[:, 1::2] = torch.cos(position * self.rates)
        return x + table


class _Assigned(nn.Module):
    """One parameter under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(5, 5)
        self.second = nn.Linear(5, 5, bias=False)
        self.second.weight = self.first.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.second(torch.relu(self.first(x)))


def _net(make: Callable[[], nn.Module], *shape: int, **options: Any) -> Program:
    return Program(make, numbers(*shape), **options)


def _float16(make: Callable[[], nn.Module], *shape: int, **target: Any) -> Program:
    return Program(lambda: make().half(), lambda: (torch.randn(shape).half(),), in_standard=False, target=target)


def _weight_norm(layer: nn.Module) -> nn.Module:
    return nn.utils.parametrizations.weight_norm(layer, dim=2)


def _states(kind: str, layers: int, both: bool) -> Program:
    def inputs() -> tuple[Tensor, ...]:
        count = 2 if kind == "LSTM" else 1
        return torch.randn(7, 2, 4), *(torch.randn(layers * (1 + both), 2, 3) for _ in range(count))

    net = getattr(nn, kind)
    return Program(lambda: _WithStates(net(4, 3, layers, bidirectional=both)), inputs, in_standard=False)


def _attention(causal: bool, masked: bool, **more: Any) -> Program:
    def attend(q: Tensor, k: Tensor, v: Tensor, *mask: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, *mask, is_causal=causal, **more)

    def inputs() -> tuple[Tensor, ...]:
        q, k, v = torch.randn(2, 4, 5, 8), torch.randn(2, 4, 6, 8), torch.randn(2, 4, 6, 8)
        return (q, k, v, torch.randn(5, 6)) if masked else (q, k, v)

    return program(attend, inputs)


def _spectrum(x: Tensor) -> Tensor:
    window = torch.hann_window(16)
    return torch.stft(x, 16, 4, window=window, return_complex=True, center=True).abs()


PROGRAMS: dict[str, Program] = {
    "conv_with_weight_norm": _net(lambda: _weight_norm(nn.Conv2d(2, 3, 3, padding=1, bias=False)), 1, 2, 5, 6),
    "transposed_conv_of_groups": _net(lambda: nn.ConvTranspose2d(8, 4, (4, 1), groups=2), 1, 8, 5, 3),
    "transposed_conv_dilated": _net(lambda: nn.ConvTranspose1d(4, 6, 3, padding=2, dilation=4), 2, 4, 11),
    "conv_of_every_channel": _net(lambda: nn.Conv1d(6, 12, 3, groups=6), 2, 6, 11),
    "convs_after_each_other": _net(
        lambda: nn.Sequential(nn.Sequential(nn.Conv1d(4, 6, 3)), nn.Conv1d(6, 3, 1)), 2, 4, 11
    ),
    "pool_dilated": _net(lambda: nn.MaxPool2d(3, 2, dilation=2), 1, 3, 13, 12),
    "adaptive_pool": _net(lambda: nn.AdaptiveAvgPool2d(4), 1, 3, 13, 12),
    "group_norm_of_an_image": _net(lambda: nn.GroupNorm(3, 6, eps=0.0), 2, 6, 3, 4),
    "squeeze_excitation": _net(_SqueezeExcitation, 2, 6, 9),
    "relative_positions": _net(_RelativePositions, 2, 7, 6),
    "shared_parameter": _net(_Assigned, 3, 5),
    **{
        f"{kind.lower()}_with_states_{layers}{'_both_ways' * both}": _states(kind, layers, both)
        for kind in ("LSTM", "GRU", "RNN")
        for layers, both in ((1, False), (2, False), (2, True))
    },
    "last_state": _net(_LastState, 7, 2, 4, in_standard=False),
    "shared_net": Program(_SharedNet, lambda: (torch.randn(2, 5, 4), torch.randn(2, 3, 4)), in_standard=False),
    "attention_to_another": Program(
        lambda: _Attention(batch_first=True), lambda: (torch.randn(2, 5, 8), torch.randn(2, 7, 8))
    ),
    "attention_with_mask": Program(_Attention, lambda: (torch.randn(5, 2, 8), torch.randn(7, 2, 8), torch.randn(5, 7))),
    "attention_with_other_widths": Program(
        lambda: _Attention(kdim=6, vdim=6, bias=False), lambda: (torch.randn(5, 2, 8), torch.randn(7, 2, 6))
    ),
    "scaled_product": _attention(causal=False, masked=False),
    "scaled_product_causal": _attention(causal=True, masked=False),
    "scaled_product_masked": _attention(causal=False, masked=True),
    "scaled_product_with_scale": _attention(causal=False, masked=False, scale=0.3),
    "fft": program(lambda x: torch.view_as_real(torch.fft.fft(x)), numbers(2, 12), in_standard=False),
    "fft_of_real": program(lambda x: torch.fft.rfft(x).abs(), numbers(2, 12), in_standard=False),
    "fft_there_and_back": program(
        lambda x: torch.fft.irfft(torch.fft.rfft(x) * 0.5, 12), numbers(2, 12), in_standard=False
    ),
    "spectrum": program(_spectrum, numbers(2, 60), in_standard=False),
    "linear_in_float16": _float16(lambda: nn.Linear(12, 5), 3, 12),
    "linear_in_float16_summed_in_floats": _float16(
        lambda: nn.Linear(12, 5), 3, 12, force_linear_accumulation_in_f32=True
    ),
    "conv_in_float16_summed_in_floats": _float16(
        lambda: nn.Conv1d(4, 3, 3), 2, 4, 9, force_linear_accumulation_in_f32=True
    ),
    "layer_norm_in_float16_by_floats": _float16(lambda: nn.LayerNorm(8), 3, 8, force_norm_in_f32=True),
    "group_norm_in_float16_by_floats": _float16(lambda: nn.GroupNorm(2, 6), 2, 6, 5, force_norm_in_f32=True),
}
