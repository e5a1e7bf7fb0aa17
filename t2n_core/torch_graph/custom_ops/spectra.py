"""The short-time Fourier transform in real numbers, as one custom operator: engines have forms of different speed."""

from __future__ import annotations

from typing import Any

import torch

from t2n_core.torch_graph.custom_ops.definition import define

library = torch.library.Library("t2n_spectra", "DEF")  # type: ignore[no-untyped-call]


def _shapes(signal: torch.Tensor, window: torch.Tensor, hop: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    frames = (signal.shape[1] - window.shape[0]) // hop + 1
    part = signal.new_empty(signal.shape[0], count, frames)
    return part, part.clone()


def _parts(signal: torch.Tensor, window: torch.Tensor, hop: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    size = window.shape[0]
    spectrum = torch.stft(signal, size, hop, size, window, center=False, onesided=False, return_complex=True)
    return spectrum.real[:, :count].contiguous(), spectrum.imag[:, :count].contiguous()


define(library, "stft(Tensor signal, Tensor window, int hop, int count) -> (Tensor, Tensor)", _shapes, _parts)


def stft(signal: torch.Tensor, window: torch.Tensor, hop: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return real and imaginary parts [B, count, frames] of a signal [B, L] under a window as long as a frame."""
    parts: Any = torch.ops.t2n_spectra.stft(signal, window, hop, count)
    return parts[0], parts[1]
