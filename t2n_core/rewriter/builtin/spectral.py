"""Fourier transforms in real numbers: products with cosines and sines, which NNEF has, for what torch gives as complex.

Angles are those of a multiple of the full circle, reduced in integers, so that they are exact for long transforms.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def dft(x: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """Real and imaginary part of the transform of real numbers along one axis, all frequencies."""
    cosine, sine = _circle(x.shape[axis], x.shape[axis])
    moved = x.movedim(axis, -1)
    return (moved @ cosine.to(x.dtype)).movedim(-1, axis), -(moved @ sine.to(x.dtype)).movedim(-1, axis)


def stft(
    x: Tensor, n_fft: int, hop: int, window: Tensor | None, center: bool, pad_mode: str, onesided: bool = True
) -> tuple[Tensor, Tensor]:
    """[B, L] -> real and imaginary part, [B, frequencies, frames], as torch.stft without normalisation."""
    if center:
        x = F.pad(x.unsqueeze(1), (n_fft // 2, n_fft // 2), mode=pad_mode).squeeze(1)
    count = n_fft // 2 + 1 if onesided else n_fft
    cosine, sine = _circle(n_fft, count)
    waves = torch.cat([cosine.T, -sine.T]).to(x.dtype)
    if window is not None:
        left = (n_fft - window.shape[0]) // 2
        waves = waves * F.pad(window, (left, n_fft - window.shape[0] - left))
    parts = F.conv1d(x.unsqueeze(1), waves.unsqueeze(1), stride=hop)
    return parts[:, :count], parts[:, count:]


def istft(real: Tensor, imaginary: Tensor, n_fft: int, hop: int, window: Tensor, length: int) -> Tensor:
    """[B, n_fft // 2 + 1, frames] -> [B, length], as a centred torch.istft without normalisation."""
    count, frames = n_fft // 2 + 1, real.shape[-1]
    cosine, sine = _circle(n_fft, count)
    twice = torch.full((count, 1), 2.0 / n_fft)
    twice[0] = 1.0 / n_fft
    if n_fft % 2 == 0:
        twice[-1] = 1.0 / n_fft
    waves = torch.cat([cosine.T * twice, -sine.T * twice]).to(real.dtype) * window
    summed = F.conv_transpose1d(torch.cat([real, imaginary], 1), waves.unsqueeze(1), stride=hop)
    ones = torch.ones(1, 1, frames, dtype=real.dtype)
    envelope = F.conv_transpose1d(ones, (window * window).reshape(1, 1, -1), stride=hop)
    start = n_fft // 2
    return (summed[:, 0, start : start + length]) / envelope[:, 0, start : start + length]


def _circle(size: Any, count: Any) -> tuple[Tensor, Tensor]:
    """cos and sin of 2 pi i j / size, [size, count]."""
    steps = (torch.arange(size).unsqueeze(1) * torch.arange(count)) % size
    turns = steps.to(torch.float64 if isinstance(size, int) else torch.float32) / size
    return torch.cos(turns * (2 * math.pi)).to(torch.float32), torch.sin(turns * (2 * math.pi)).to(torch.float32)
