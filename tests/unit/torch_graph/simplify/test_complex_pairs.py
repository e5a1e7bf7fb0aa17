"""Transforms in real numbers against torch's own, in sizes on both sides of every split; the rest is contract cases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from t2n_core import ModelExport, TractNNEF
from t2n_core.errors import LowerError, UnsupportedOpsError
from t2n_core.torch_graph.simplify.complex_pairs import Pair, fourier
from t2n_core.torch_graph.simplify.decompositions import Refusal
from tests.nets import net_of
from tests.releases import NEWEST

aten = torch.ops.aten
SIZES = [1, 2, 7, 16, 400, 1024, 1025, 1200, 2048, 2053, 4096]


def distance(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).abs().max() / expected.abs().max())


def signal(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(3))


def spectrum(*shape: int) -> Tensor:
    return torch.complex(signal(*shape), signal(*shape).flip(0))


@pytest.mark.parametrize("normalization", [0, 1, 2])
@pytest.mark.parametrize("size", SIZES)
def test_transforms_of_one_axis(size: int, normalization: int) -> None:
    x, z = signal(3, size), spectrum(3, size)
    result = fourier.fft_r2c(x, [1], normalization, True)
    assert distance(torch.complex(result.re, result.im), aten._fft_r2c(x.double(), [1], normalization, True)) < 2e-6
    for forward in (True, False):
        both = fourier.fft_c2c(Pair(z.real, z.imag), [1], normalization, forward)
        expected = aten._fft_c2c(z.to(torch.complex128), [1], normalization, forward)
        assert distance(torch.complex(both.re, both.im), expected) < 2e-6
    half = z[:, : size // 2 + 1]
    back = fourier.fft_c2r(Pair(half.real, half.imag), [1], normalization, size)
    assert distance(back, aten._fft_c2r(half.to(torch.complex128), [1], normalization, size)) < 2e-6


def test_transforms_of_several_axes() -> None:
    x, z = signal(3, 5, 8), spectrum(3, 5, 8)
    result = fourier.fft_r2c(x, [0, 2, 1], 1, False)
    assert distance(torch.complex(result.re, result.im), aten._fft_r2c(x.double(), [0, 2, 1], 1, False)) < 1e-6
    back = fourier.fft_c2r(Pair(z.real, z.imag), [0, 2], 2, 15)
    assert distance(back, aten._fft_c2r(z.to(torch.complex128), [0, 2], 2, 15)) < 1e-6


@pytest.mark.parametrize("forward", [True, False])
def test_transforms_of_real_numbers_as_complex_ones(forward: bool) -> None:
    x = signal(3, 5, 8)
    result = fourier.fft_of_real(x, [0, 2], 1, forward)
    expected = aten._fft_c2c(x.to(torch.complex128), [0, 2], 1, forward)
    assert distance(torch.complex(result.re, result.im), expected) < 1e-6


def test_a_part_that_is_not_read_is_not_computed(tmp_path: Path) -> None:
    """The real part of a transform of real numbers over two axes is four real products; of complex ones it is six."""
    export = ModelExport(net_of(lambda _, x: torch.fft.fftn(x, dim=(1, 2)).real), signal(3, 6, 10))
    graph = export.to(TractNNEF(NEWEST, check_io=False), tmp_path / "m.nnef.tar").graph
    assert sum(operation.name == "matmul" for operation in graph.operations) == 4
    assert not any(operation.name in {"concat", "tile"} for operation in graph.operations)


def test_a_long_prime_is_refused() -> None:
    with pytest.raises(Refusal, match="4099 cannot be split"):
        fourier.fft_r2c(signal(1, 4099), [1], 0, True)


@pytest.mark.parametrize("onesided", [True, False])
@pytest.mark.parametrize(("center", "pad_mode"), [(True, "reflect"), (True, "constant"), (False, "reflect")])
@pytest.mark.parametrize(("n_fft", "hop", "width"), [(32, 8, 32), (31, 7, 20), (400, 160, 400)])
def test_stft(n_fft: int, hop: int, width: int, center: bool, pad_mode: str, onesided: bool) -> None:
    x, window = signal(3, 1203), torch.hann_window(width) + 0.1
    result: Any = fourier.stft_center(x, n_fft, hop, width, window, center, pad_mode, False, onesided, True)
    expected = torch.stft(
        x.double(), n_fft, hop, width, window.double(), center, pad_mode, onesided=onesided, return_complex=True
    )
    assert distance(torch.complex(result.re, result.im), expected) < 1e-6


@pytest.mark.parametrize(("n_fft", "hop", "width"), [(32, 8, 32), (30, 10, 24), (256, 64, 256)])
@pytest.mark.parametrize("length", [None, 5, 8])
def test_istft(n_fft: int, hop: int, width: int, length: int | None) -> None:
    z = spectrum(3, n_fft // 2 + 1, 9)
    window, wanted_length = torch.hann_window(width) + 0.1, None if length is None else length * hop - 3
    result = fourier.istft(Pair(z.real, z.imag), n_fft, hop, width, window, length=wanted_length)
    expected = torch.istft(z.to(torch.complex128), n_fft, hop, width, window.double(), length=wanted_length)
    assert distance(result, expected) < 1e-5


def test_the_way_in_and_out_is_said() -> None:
    class Net(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * 2j

    with pytest.raises(LowerError, match=r"an output is complex") as problem:
        ModelExport(Net(), signal(3)).lower(TractNNEF(NEWEST))
    assert "view_as_real" in str(problem.value)

    with pytest.raises(LowerError, match="complex64") as problem:
        ModelExport(net_of(lambda _, x: x.abs()), spectrum(3)).lower(TractNNEF(NEWEST))
    assert "view_as_complex" in str(problem.value)


def test_every_refused_operator_is_listed() -> None:
    class Net(torch.nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            z = torch.fft.rfft(x)
            return z.sin().abs(), z.cosh().real

    with pytest.raises(UnsupportedOpsError) as problem:
        ModelExport(Net(), signal(3, 8)).lower(TractNNEF(NEWEST))
    assert "aten::sin of complex numbers" in str(problem.value)
    assert "aten::cosh of complex numbers" in str(problem.value)
