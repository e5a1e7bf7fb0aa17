"""Fourier transforms of a given length over dynamic axes: `torch.fft` would fit them to the captured size only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from t2n_core.torch_graph.simplify.complex_pairs.inverse_real import resize_axis


def _fit(input: Tensor, sizes: Sequence[Any], dims: Sequence[int]) -> Tensor:
    """Return `input` with each axis of `dims` sliced or zero-padded to its size; None and -1 leave it as it is."""
    for size, dim in zip(sizes, dims, strict=False):
        axis = dim % input.dim()
        if size not in (None, -1) and any(isinstance(extent, torch.SymInt) for extent in (size, input.shape[axis])):
            input = resize_axis(input, axis, size)
    return input


def _of_one(plain: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def transform(input: Tensor, n: Any = None, dim: int = -1, norm: str | None = None, **options: Any) -> Tensor:
        return plain(_fit(input, [n], [dim]), n, dim, norm, **options)

    return transform


def _of_many(plain: Callable[..., Tensor], default: tuple[int, ...] | None) -> Callable[..., Tensor]:
    def transform(input: Tensor, s: Any = None, dim: Any = default, norm: str | None = None, **options: Any) -> Tensor:
        dims = range(-len(s), 0) if dim is None and s is not None else dim
        return plain(input if s is None else _fit(input, s, dims), s, dim, norm, **options)

    return transform


RESIZED: dict[Any, Callable[..., Tensor]] = {
    **{plain: _of_one(plain) for plain in (torch.fft.fft, torch.fft.ifft, torch.fft.rfft, torch.fft.ihfft)},
    **{
        plain: _of_many(plain, (-2, -1))
        for plain in (torch.fft.fft2, torch.fft.ifft2, torch.fft.rfft2, torch.fft.ihfft2)
    },
    **{plain: _of_many(plain, None) for plain in (torch.fft.fftn, torch.fft.ifftn, torch.fft.rfftn, torch.fft.ihfftn)},
}
"""Function of torch.fft -> its capture override."""


__all__ = ["RESIZED"]
