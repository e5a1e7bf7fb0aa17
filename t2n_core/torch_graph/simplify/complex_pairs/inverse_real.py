"""Fourier transforms to real tensors over dynamic axes, for which `torch.fft` needs concrete sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from t2n_core.torch_graph.compat.operators import operator
from t2n_core.torch_graph.overrides.registry import FIXES_SIZES, override_each
from t2n_core.torch_graph.simplify.complex_pairs import Pair
from t2n_core.torch_graph.simplify.complex_pairs.fourier import fft_c2r

_SLICE = operator("aten::slice.Tensor")

_INVERSE = {"forward": 0, "ortho": 1, "backward": 2, None: 2}
_HERMITIAN = {"backward": 0, "ortho": 1, "forward": 2, None: 0}
"""Norm of `irfft` or `hfft` -> the normalization argument of `_fft_c2r`."""


def _to_real(
    plain: Callable[..., Tensor], input: Tensor, sizes: Sequence[Any], dims: Sequence[int], norm: str | None
) -> Tensor:
    hermitian = plain.__name__.removeprefix("fft_").startswith("hfft")
    kinds = _HERMITIAN if hermitian else _INVERSE
    if not input.is_complex() and not input.is_floating_point():
        input = input.to(torch.get_default_dtype())
    imaginary = input.imag if input.is_complex() else torch.zeros_like(input)
    spectrum = Pair(input.real, -imaginary if hermitian else imaginary)
    *others, last = [dim % input.dim() for dim in dims]
    size = sizes[-1] if sizes[-1] is not None else 2 * (input.shape[last] - 1)
    axis_sizes = [*zip(others, sizes, strict=False), (last, size // 2 + 1)]
    for axis, count in axis_sizes:
        if count is not None:
            spectrum = Pair(resize_axis(spectrum.re, axis, count), resize_axis(spectrum.im, axis, count))
    return fft_c2r(spectrum, [*others, last], kinds[norm], size)


def resize_axis(x: Tensor, axis: int, size: Any) -> Tensor:
    """Return `x` with an axis zero-padded at its end, or sliced, to `size`; symbolic sizes are padded, then sliced."""
    is_static = isinstance(x.shape[axis], int) and isinstance(size, int)
    more = max(size - x.shape[axis], 0) if is_static else size
    padded = F.pad(x, [0, 0] * (x.dim() - 1 - axis) + [0, more])
    result: Tensor = _SLICE(padded, axis, 0, size)
    return result


def _is_static(input: Tensor) -> bool:
    return all(isinstance(size, int) for size in input.shape)


@override_each(torch.fft.irfft, torch.fft.hfft, reason=FIXES_SIZES)
def along_one_axis(
    plain: Callable[..., Tensor], input: Tensor, n: Any = None, dim: int = -1, norm: str | None = None
) -> Tensor:
    """Return a transform of length `n`."""
    if _is_static(input) and not isinstance(n, torch.SymInt):
        return plain(input, n, dim, norm)
    return _to_real(plain, input, [n], [dim], norm)


@override_each(torch.fft.irfft2, torch.fft.hfft2, reason=FIXES_SIZES)
def along_two_axes(
    plain: Callable[..., Tensor], input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None
) -> Tensor:
    """Return a transform of the lengths `s`."""
    return along_axes(plain, input, s, dim, norm)


@override_each(torch.fft.irfftn, torch.fft.hfftn, reason=FIXES_SIZES)
def along_axes(
    plain: Callable[..., Tensor], input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None
) -> Tensor:
    """Return a transform of the lengths `s`, along the last axes if `dim` is not passed."""
    if _is_static(input):
        return plain(input, s, dim, norm)
    dims = range(input.dim() - (input.dim() if s is None else len(s)), input.dim()) if dim is None else dim
    sizes = [None] * len(dims) if s is None else [None if size == -1 else size for size in s]
    return _to_real(plain, input, sizes, list(dims), norm)
