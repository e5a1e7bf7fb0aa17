"""torchaudio: spectrograms, whose complex numbers never leave the model, as real ones."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from t2n_core.rewriter.builtin import spectral
from t2n_core.rewriter.builtin.marks import builtin_function
from t2n_core.rewriter.context import RewriteContext

HDEMUCS = "torchaudio.models._hdemucs:HDemucs"


@builtin_function("torchaudio.functional.functional:spectrogram")
def spectrogram(
    ctx: RewriteContext, waveform: Tensor, pad: int, window: Tensor, n_fft: int, hop_length: int, win_length: int,
    power: float | None, normalized: bool | str, center: bool = True, pad_mode: str = "reflect", onesided: bool = True,
    return_complex: Any = None,
) -> Tensor:  # fmt: skip
    """A magnitude or a power is real; `power=None` asks for complex numbers and stays what it is."""
    if power is None:
        return ctx.original(  # type: ignore[no-any-return]
            waveform, pad, window, n_fft, hop_length, win_length, power, normalized, center, pad_mode, onesided
        )
    if pad > 0:
        waveform = F.pad(waveform, (pad, pad), "constant")
    shape = waveform.shape
    real, imaginary = spectral.stft(
        waveform.reshape(-1, shape[-1]), n_fft, hop_length, window, center, pad_mode, onesided
    )
    squared = (real * real + imaginary * imaginary).reshape(*shape[:-1], *real.shape[-2:])
    if normalized == "frame_length":
        squared = squared / window.shape[0]
    elif normalized:
        squared = squared / window.pow(2.0).sum()
    if power == 2.0:
        return squared
    return squared.sqrt() if power == 1.0 else squared.sqrt().pow(power)


# HDemucs hands a complex spectrogram from one method to the next: here it is real, its two parts in a last axis.


@builtin_function(f"{HDEMUCS}._spec")
def hdemucs_spec(ctx: RewriteContext, self: Any, x: Tensor) -> Tensor:
    hop, size = self.hop_length, self.nfft
    count = math.ceil(x.shape[-1] / hop)
    pad = hop // 2 * 3
    x = self._pad1d(x, pad, pad + count * hop - x.shape[-1], mode="reflect")
    parts = spectral.stft(x.reshape(-1, x.shape[-1]), size, hop, torch.hann_window(size), True, "reflect")
    z = torch.stack(parts, -1).reshape(*x.shape[:-1], *parts[0].shape[-2:], 2) / math.sqrt(size)
    return z[..., :-1, 2 : 2 + count, :]


@builtin_function(f"{HDEMUCS}._magnitude")
def hdemucs_magnitude(ctx: RewriteContext, self: Any, z: Tensor) -> Tensor:
    batch, channels, frequencies, frames, _ = z.shape
    return z.permute(0, 1, 4, 2, 3).reshape(batch, channels * 2, frequencies, frames)


@builtin_function(f"{HDEMUCS}._mask")
def hdemucs_mask(ctx: RewriteContext, self: Any, m: Tensor) -> Tensor:
    batch, sources, _, frequencies, frames = m.shape
    return m.reshape(batch, sources, -1, 2, frequencies, frames).permute(0, 1, 2, 4, 5, 3)


@builtin_function(f"{HDEMUCS}._ispec")
def hdemucs_ispec(ctx: RewriteContext, self: Any, z: Tensor, length: int) -> Tensor:
    hop, size = self.hop_length, self.nfft
    z = F.pad(z, (0, 0, 2, 2, 0, 1)) * math.sqrt(size)
    pad = hop // 2 * 3
    whole = hop * math.ceil(length / hop) + 2 * pad
    flat = z.reshape(-1, *z.shape[-3:])
    x = spectral.istft(flat[..., 0], flat[..., 1], size, hop, torch.hann_window(size), whole)
    return x.reshape(*z.shape[:-3], -1)[..., pad : pad + length]
