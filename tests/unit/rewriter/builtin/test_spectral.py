"""Real transforms against torch's complex ones."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from t2n_core.rewriter.builtin import spectral


def distance(found: Tensor, wanted: Tensor) -> float:
    return float((found - wanted).abs().max() / wanted.abs().max())


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_dft(axis: int) -> None:
    torch.manual_seed(0)
    x = torch.randn(5, 7, 12)
    real, imaginary = spectral.dft(x, axis)
    wanted = torch.fft.fft(x.double(), dim=axis)
    assert distance(real, wanted.real) < 1e-6
    assert distance(imaginary, wanted.imag) < 1e-6


@pytest.mark.parametrize("onesided", [True, False])
@pytest.mark.parametrize(("center", "pad_mode"), [(True, "reflect"), (True, "constant"), (False, "reflect")])
@pytest.mark.parametrize(("n_fft", "hop", "width"), [(32, 8, 32), (31, 7, 20), (400, 160, 400)])
def test_stft(n_fft: int, hop: int, width: int, center: bool, pad_mode: str, onesided: bool) -> None:
    torch.manual_seed(1)
    x, window = torch.randn(3, 1203), torch.hann_window(width) + 0.1
    real, imaginary = spectral.stft(x, n_fft, hop, window, center, pad_mode, onesided)
    wanted = torch.stft(
        x.double(), n_fft, hop, width, window.double(), center, pad_mode, onesided=onesided, return_complex=True
    )
    assert distance(real, wanted.real) < 1e-6
    assert distance(imaginary, wanted.imag) < 1e-6


@pytest.mark.parametrize(("n_fft", "hop"), [(32, 8), (30, 10), (256, 64)])
def test_istft(n_fft: int, hop: int) -> None:
    torch.manual_seed(2)
    z = torch.randn(3, n_fft // 2 + 1, 9, dtype=torch.complex64)
    window, length = torch.hann_window(n_fft), 7 * hop
    found = spectral.istft(z.real, z.imag, n_fft, hop, window, length)
    wanted = torch.istft(z.to(torch.complex128), n_fft, hop, window=window.double(), length=length)
    assert distance(found, wanted) < 1e-5
