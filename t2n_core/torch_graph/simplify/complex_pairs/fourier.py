"""Fourier transforms as products with cosines and sines, and short-time transforms as convolutions with them.

Angles are fractions of a full circle, reduced as integers before the division, so that they are exact at any length.
Long transforms are split into two shorter ones (Cooley and Tukey, 1965), so that their matrices stay small.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from t2n_core.torch_graph.custom_ops import spectra
from t2n_core.torch_graph.overrides.registry import FIXES_SIZES, override
from t2n_core.torch_graph.simplify.complex_pairs import Pair, on_pairs
from t2n_core.torch_graph.simplify.complex_pairs.arithmetic import mul, view_as_real
from t2n_core.torch_graph.simplify.decompositions import Refusal

DIRECT = 1024
"""Longest transform that is a single product: its matrix then has 4 MB."""
LONGEST_PRIME = 4096


@on_pairs("aten::_fft_r2c")
def fft_r2c(self: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Pair:
    *others, last = dim
    size = self.shape[last]
    count = size // 2 + 1 if onesided else size
    if _is_direct(size):
        cosine, sine = waves(size, count, self.dtype)
        moved = self.movedim(last, -1)
        spectrum = Pair((moved @ cosine).movedim(-1, last), (moved @ (0.0 - sine)).movedim(-1, last))
    else:
        full_spectrum = _along(Pair(self, torch.zeros_like(self)), last, forward=True)
        spectrum = Pair(full_spectrum.re.narrow(last, 0, count), full_spectrum.im.narrow(last, 0, count))
    for axis in others:
        spectrum = _along(spectrum, axis, forward=True)
    return _normalised(spectrum, [size, *(self.shape[axis] for axis in others)], normalization)


@on_pairs("aten::_fft_c2c")
def fft_c2c(self: Pair, dim: Sequence[int], normalization: int, forward: bool) -> Pair:
    spectrum = self
    for axis in dim:
        spectrum = _along(spectrum, axis, forward)
    return _normalised(spectrum, [self.re.shape[axis] for axis in dim], normalization)


def fft_of_real(self: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Pair:
    """Return what `fft_c2c` returns for a real tensor, of which no imaginary part is multiplied."""
    spectrum = fft_r2c(self, dim, normalization, onesided=False)
    return spectrum if forward else Pair(spectrum.re, -spectrum.im)


@on_pairs("aten::_fft_c2r")
def fft_c2r(self: Pair, dim: Sequence[int], normalization: int, last_dim_size: int) -> Tensor:
    """Transform half of a spectrum back to a real signal; the other half is its conjugate."""
    *others, last = dim
    size = last_dim_size
    signal = self
    for axis in others:
        signal = _along(signal, axis, forward=False)
    re, im = signal.re.movedim(last, -1), signal.im.movedim(last, -1)
    if _is_direct(size):
        cosine, sine = half_waves(size, re.dtype)
        result = re @ cosine - im @ sine
    else:
        missing = size - re.shape[-1]
        mirrored = Pair(re.narrow(-1, 1, missing).flip(-1), im.narrow(-1, 1, missing).flip(-1))
        full_spectrum = Pair(torch.cat([re, mirrored.re], -1), torch.cat([im, -mirrored.im], -1))
        result = _transform(full_spectrum, forward=False).re
    sizes = [size, *(self.re.shape[axis] for axis in others)]
    return _scale(result.movedim(-1, last), sizes, normalization)


def waves(size: Any, count: Any, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return cos and sin of 2 pi t k / size, [size, count]; of a dynamic size in the engine and not in float64.

    The sine of half a circle is exactly 0: with a rounding error the angle of a result would be pi or -pi by chance.
    """
    turns = torch.fmod(torch.arange(size).unsqueeze(1) * torch.arange(count), size)  # `%` also asks for signs
    exact = torch.float64 if isinstance(size, int) else dtype
    angles = turns.to(exact) / size * (2 * math.pi)
    sine = angles.sin().masked_fill((turns == 0) | (2 * turns == size), 0.0)
    return angles.cos().to(dtype), sine.to(dtype)


def half_waves(size: Any, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return the waves that add up to a real signal of `size`, [size // 2 + 1, size]; inner ones count twice."""
    cosine, sine = waves(size, size // 2 + 1, dtype)
    frequency = torch.arange(size // 2 + 1).unsqueeze(1)
    twice = torch.where((frequency == 0) | (2 * frequency == size), 1.0, 2.0).to(dtype)
    return cosine.T * twice, sine.T * twice


def _along(z: Pair, axis: int, forward: bool) -> Pair:
    spectrum = _transform(Pair(z.re.movedim(axis, -1), z.im.movedim(axis, -1)), forward)
    return Pair(spectrum.re.movedim(-1, axis), spectrum.im.movedim(-1, axis))


def _transform(z: Pair, forward: bool) -> Pair:
    """Return the Fourier transform over the last axis, forward or inverse, without a scale factor."""
    size = z.re.shape[-1]
    columns = 1 if _is_direct(size) else _split(size)
    if columns == 1:
        cosine, sine = waves(size, size, z.re.dtype)
        sine = -sine if forward else sine
        return Pair(z.re @ cosine - z.im @ sine, z.re @ sine + z.im @ cosine)
    rows = size // columns
    shape = z.re.shape[:-1]
    table = Pair(z.re.reshape(*shape, rows, columns), z.im.reshape(*shape, rows, columns))
    table = _along(table, -2, forward)
    angles = torch.arange(rows, dtype=torch.float64).unsqueeze(1) * torch.arange(columns) * (2 * math.pi / size)
    twist = Pair(angles.cos().to(z.re.dtype), (-angles.sin() if forward else angles.sin()).to(z.re.dtype))
    table = _transform(mul(table, twist), forward)
    return Pair(table.re.mT.reshape(*shape, size), table.im.mT.reshape(*shape, size))


def _is_direct(size: Any) -> bool:
    return not isinstance(size, int) or size <= DIRECT


def _split(size: int) -> int:
    """Return the largest divisor up to the square root."""
    divisor = next(d for d in range(math.isqrt(size), 0, -1) if size % d == 0)
    if divisor == 1 and size > LONGEST_PRIME:
        raise Refusal(f"a Fourier transform of {size} cannot be split into shorter ones")
    return divisor


def _scale(x: Tensor, sizes: Sequence[Any], normalization: int) -> Tensor:
    """Scale by PyTorch's `fft_norm_mode`: 0 is no scaling, 1 by the root of the number of elements, 2 by the number."""
    for size in sizes if normalization else ():
        if normalization == 2:
            x = x / size
        elif isinstance(size, int):
            x = x / math.sqrt(size)
        else:  # the root of a dynamic size is not a constant
            x = x / torch.ones(size, dtype=x.dtype).sum().sqrt()
    return x


def _normalised(z: Pair, sizes: Sequence[Any], normalization: int) -> Pair:
    return Pair(_scale(z.re, sizes, normalization), _scale(z.im, sizes, normalization))


@on_pairs("aten::stft.default")
def stft(
    self: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, normalized: bool = False, onesided: bool | None = None,
    return_complex: bool | None = None, align_to_window: bool | None = None,
) -> Pair | Tensor:  # fmt: skip
    """[B, L] or [L] -> [B, frequencies, frames]."""
    if isinstance(self, Pair) or isinstance(window, Pair) or align_to_window:
        raise Refusal("stft of complex numbers, or aligned to its window, is not supported")
    hop = n_fft // 4 if hop_length is None else hop_length
    count = n_fft if onesided is False else n_fft // 2 + 1
    shaped = _window(window, win_length, n_fft, self.dtype) * (n_fft**-0.5 if normalized else 1.0)
    spectrum = Pair(*spectra.stft(self if self.dim() == 2 else self.unsqueeze(0), shaped, hop, count))
    if self.dim() == 1:
        spectrum = Pair(spectrum.re.squeeze(0), spectrum.im.squeeze(0))
    return spectrum if return_complex else view_as_real(spectrum)


@on_pairs("aten::stft.center")
def stft_center(
    self: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, pad_mode: str = "reflect", *arguments: Any, **keywords: Any,
) -> Pair | Tensor:  # fmt: skip
    if center:
        rows = self if self.dim() == 2 else self.unsqueeze(0)
        padded = F.pad(rows.unsqueeze(1), (n_fft // 2, n_fft // 2), mode=pad_mode).squeeze(1)
        self = padded if self.dim() == 2 else padded.squeeze(0)
    return stft(self, n_fft, hop_length, win_length, window, *arguments, **keywords)


@on_pairs("aten::istft")
def istft(
    self: Pair, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, normalized: bool = False, onesided: bool | None = None,
    length: int | None = None, return_complex: bool = False,
) -> Tensor:  # fmt: skip
    """[B, frequencies, frames] or [frequencies, frames] -> [B, L]: frames are added up by a transposed convolution."""
    if return_complex or isinstance(window, Pair):
        raise Refusal("istft to complex numbers is not supported")
    hop = n_fft // 4 if hop_length is None else hop_length
    count = n_fft // 2 + 1
    dtype = self.re.dtype
    shaped = _window(window, win_length, n_fft, dtype)
    cosine, sine = half_waves(n_fft, dtype)
    kernels = torch.cat([cosine, -sine]) * shaped * (n_fft**-0.5 if normalized else 1.0 / n_fft)
    single = self.re.dim() == 2
    parts = [(p.unsqueeze(0) if single else p).narrow(1, 0, count) for p in (self.re, self.im)]
    frames = parts[0].shape[-1]
    summed = F.conv_transpose1d(torch.cat(parts, 1), kernels.unsqueeze(1), stride=hop).squeeze(1)
    ones = torch.ones(1, 1, frames, dtype=dtype)
    weight = F.conv_transpose1d(ones, (shaped * shaped).reshape(1, 1, -1), stride=hop).squeeze(1)
    full_length = n_fft + hop * (frames - 1)
    start = n_fft // 2 if center else 0
    end = full_length - start if length is None else start + length
    if length is not None and (not isinstance(end - full_length, int) or end > full_length):
        # a length beyond the frames is filled with zeros; either of the two ends may be first
        beyond = length if not isinstance(end - full_length, int) else end - full_length
        summed, weight = F.pad(summed, (0, beyond)), F.pad(weight, (0, beyond), value=1.0)
    signal = summed[:, start:end] / weight[:, start:end]
    return signal.squeeze(0) if single else signal


@override(torch.istft, reason=FIXES_SIZES)
def istft_of_any_length(input: Tensor, n_fft: int, *arguments: Any, **keywords: Any) -> Tensor:
    """`torch.istft` with a `length` that may be a dynamic size, which PyTorch's own cannot."""
    call = inspect.signature(istft).bind(input, n_fft, *arguments, **keywords).arguments
    if isinstance(call.get("length"), torch.SymInt):
        return istft(**{**call, "self": Pair(input.real, input.imag)})
    return torch.istft(input, n_fft, *arguments, **keywords)


def _window(window: Tensor | None, win_length: int | None, n_fft: int, dtype: torch.dtype) -> Tensor:
    """Return a window of n_fft elements; a shorter window is centred between zeros."""
    width = n_fft if win_length is None else win_length
    shape = torch.ones(width, dtype=dtype) if window is None else window
    left = (n_fft - width) // 2
    return F.pad(shape, (left, n_fft - width - left)) if width < n_fft else shape
