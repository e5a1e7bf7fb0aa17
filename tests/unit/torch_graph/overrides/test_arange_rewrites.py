"""What is captured for dynamic sizes computes what PyTorch does, and numbers are left to PyTorch."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from t2n_core.errors import CaptureError
from t2n_core.torch_graph.overrides import arange_rewrites
from t2n_core.torch_graph.overrides.registry import overrides


@pytest.fixture
def every_size_is_dynamic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arange_rewrites, "_is_free", lambda sizes: True)


pytestmark = pytest.mark.usefixtures("every_size_is_dynamic")
SIZES = range(1, 12)


@pytest.mark.parametrize("function", [torch.fft.fftfreq, torch.fft.rfftfreq])
@pytest.mark.parametrize("size", SIZES)
def test_frequencies(function: object, size: int) -> None:
    for dtype in (torch.float32, torch.float64):
        result = overrides()[function].replacement(size, 0.3, dtype=dtype)
        torch.testing.assert_close(result, function(size, 0.3, dtype=dtype))  # type: ignore[operator]


def test_frequencies_of_integers_are_pytorchs_error() -> None:
    with pytest.raises(RuntimeError):
        arange_rewrites.fftfreq(5, dtype=torch.int64)


@pytest.mark.parametrize("align_corners", [True, False])
def test_grids(align_corners: bool) -> None:
    for rank in (2, 3):
        for size in ((1, 2, 5), (4, 1, 3), (2, 6, 1), (1, 1, 1)):
            theta = torch.randn(2, rank, rank + 1, dtype=torch.float64)
            shape = (2, 1, *size[:rank])
            result = arange_rewrites.affine_grid(theta, shape, align_corners)
            torch.testing.assert_close(result, F.affine_grid(theta, list(shape), align_corners=align_corners))


@pytest.mark.parametrize("wrap", [True, False])
@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (4, 1), (5, 2), (9, 2), (9, 3), (3, 9), (4, 4), (3, 3, 3)])
def test_diagonals(shape: tuple[int, ...], wrap: bool) -> None:
    for dtype, value in ((torch.float32, -2.5), (torch.int64, -2.5), (torch.int64, 3), (torch.bool, 0.5)):
        x = (torch.randn(shape) * 9).to(dtype)
        expected = x.clone().fill_diagonal_(value, wrap)
        assert arange_rewrites.fill_diagonal_(x, value, wrap) is x
        assert x.equal(expected)


@pytest.mark.parametrize("axes", [None, 0, -1, (0, -1), (1, 2), ()])
@pytest.mark.parametrize("keepdim", [True, False])
def test_complex_means(axes: object, keepdim: bool) -> None:
    x = torch.randn(2, 3, 4, dtype=torch.complex128)
    if axes is None:
        torch.testing.assert_close(arange_rewrites.mean(x), x.mean())
    else:
        result = arange_rewrites.mean(x, axes, keepdim)
        torch.testing.assert_close(result, torch.mean(x, axes, keepdim))  # type: ignore[call-overload]


@pytest.mark.parametrize("data", [3, 2.5, [3, -2.5], [[1, 2.5], [-7, 4]]])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_new_tensors(data: object, dtype: torch.dtype) -> None:
    x = torch.zeros(2, dtype=dtype)
    torch.testing.assert_close(arange_rewrites.new_tensor(x, data), x.new_tensor(data))


def test_classes() -> None:
    i = torch.tensor([[3, 0, 1], [2, 2, 4]])
    assert arange_rewrites.one_hot(i, 5).equal(F.one_hot(i, 5))


def test_areas_along_one_axis() -> None:
    x = torch.randn(2, 3, 7)
    torch.testing.assert_close(arange_rewrites.adaptive_avg_pool1d(x, 3), F.adaptive_avg_pool1d(x, 3))
    torch.testing.assert_close(arange_rewrites.adaptive_avg_pool1d(x, [4]), F.adaptive_avg_pool1d(x, [4]))
    for options in ({"size": 3}, {"size": (5,)}, {"scale_factor": 0.6}, {"scale_factor": [1.7]}):
        result = arange_rewrites.interpolate(x, mode="area", **options)
        torch.testing.assert_close(result, F.interpolate(x, mode="area", **options))  # type: ignore[arg-type]
    assert arange_rewrites.interpolate(x, 14).equal(F.interpolate(x, 14))


@pytest.mark.parametrize(("mode", "rank"), [("linear", 1), ("bilinear", 2), ("bicubic", 2), ("trilinear", 3)])
@pytest.mark.parametrize("align_corners", [False, True])
def test_factors(mode: str, rank: int, align_corners: bool) -> None:
    x = torch.randn(2, 3, *[5, 7, 4][:rank])
    for factor in (0.37, 0.8, 1.0, 1.02, 1.9, 2.6):
        factors = [factor + axis / 10 for axis in range(rank)]
        options = {"scale_factor": factors, "mode": mode, "align_corners": align_corners}
        torch.testing.assert_close(arange_rewrites.interpolate(x, **options), F.interpolate(x, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("how", [{"mode": "nearest"}, {"mode": "bilinear", "antialias": True}])
def test_factors_that_are_refused(how: dict[str, object]) -> None:
    with pytest.raises(CaptureError, match="scale_factor of interpolate is computed from sizes"):
        arange_rewrites.interpolate(torch.randn(1, 2, 5, 7), scale_factor=1.3, **how)  # type: ignore[arg-type]
