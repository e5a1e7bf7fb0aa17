"""Fourier transforms of a given length over dynamic axes: `torch.fft` would fit them to the captured size only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from t2n_core.torch_graph.overrides.registry import FIXES_SIZES, override_each
from t2n_core.torch_graph.simplify.complex_pairs.inverse_real import resize_axis


def _fit(input: Tensor, sizes: Sequence[Any], dims: Sequence[int]) -> Tensor:
    """Return `input` with each axis of `dims` sliced or zero-padded to its size; None and -1 leave it as it is."""
    for size, dim in zip(sizes, dims, strict=False):
        axis = dim % input.dim()
        if size not in (None, -1) and any(isinstance(extent, torch.SymInt) for extent in (size, input.shape[axis])):
            input = resize_axis(input, axis, size)
    return input


@override_each(torch.fft.fft, torch.fft.ifft, torch.fft.rfft, torch.fft.ihfft, reason=FIXES_SIZES)
def along_one_axis(
    plain: Callable[..., Tensor], input: Tensor, n: Any = None, dim: int = -1, norm: str | None = None, **options: Any
) -> Tensor:
    """Return a transform of length `n`."""
    return plain(_fit(input, [n], [dim]), n, dim, norm, **options)


@override_each(torch.fft.fft2, torch.fft.ifft2, torch.fft.rfft2, torch.fft.ihfft2, reason=FIXES_SIZES)
def along_two_axes(
    plain: Callable[..., Tensor], input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None,
    **options: Any,
) -> Tensor:  # fmt: skip
    """Return a transform of the lengths `s`."""
    return along_axes(plain, input, s, dim, norm, **options)


@override_each(torch.fft.fftn, torch.fft.ifftn, torch.fft.rfftn, torch.fft.ihfftn, reason=FIXES_SIZES)
def along_axes(
    plain: Callable[..., Tensor], input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, **options: Any
) -> Tensor:
    """Return a transform of the lengths `s`, along the last axes if `dim` is not passed."""
    dims = range(-len(s), 0) if dim is None and s is not None else dim
    return plain(input if s is None else _fit(input, s, dims), s, dim, norm, **options)
