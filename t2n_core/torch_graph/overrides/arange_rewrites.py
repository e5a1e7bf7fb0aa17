"""Functions whose C++ code needs concrete sizes, rewritten with `torch.arange` for dynamic sizes.

For static sizes PyTorch's own function is captured.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from t2n_core.errors import CaptureError
from t2n_core.torch_graph.compat.private import _check, _shape_as_tensor, pytree
from t2n_core.torch_graph.overrides.registry import FIXES_SIZES, override

_SYMBOLIC = (torch.SymInt, torch.SymFloat)
_arange: Any = torch.arange  # takes sizes, whatever its annotations say
_full: Any = torch.full
_fftfreq: Any = torch.fft.fftfreq
_rfftfreq: Any = torch.fft.rfftfreq


@override(torch.fft.fftfreq, reason=FIXES_SIZES)
def fftfreq(n: Any, d: float = 1.0, *, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
    """`torch.fft.fftfreq`: the non-negative indices, then the negative ones, divided by n * d."""
    if not _is_free((n, d)) or not _makes_floats(dtype, options):
        frequencies: Tensor = _fftfreq(n, d, dtype=dtype, **options)
        return frequencies
    indices = _arange(n)
    return _over(torch.where(indices < (n + 1) // 2, indices, indices - n), n, d, dtype)


@override(torch.fft.rfftfreq, reason=FIXES_SIZES)
def rfftfreq(n: Any, d: float = 1.0, *, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
    """`torch.fft.rfftfreq`: the non-negative indices, divided by n * d."""
    if not _is_free((n, d)) or not _makes_floats(dtype, options):
        frequencies: Tensor = _rfftfreq(n, d, dtype=dtype, **options)
        return frequencies
    return _over(_arange(n // 2 + 1), n, d, dtype)


def _makes_floats(dtype: torch.dtype | None, options: dict[str, Any]) -> bool:
    return options.get("out") is None and (dtype or torch.get_default_dtype()).is_floating_point


def _over(places: Tensor, n: Any, d: float, dtype: torch.dtype | None) -> Tensor:
    result_dtype = dtype or torch.get_default_dtype()
    divisor: Tensor = _full((), n * d, dtype=result_dtype)
    return places.to(result_dtype) / divisor


@override(functional.affine_grid, reason=FIXES_SIZES)
def affine_grid(theta: Tensor, size: Sequence[Any], align_corners: bool | None = None) -> Tensor:
    """`torch.nn.functional.affine_grid`: the coordinates of an image from -1 to 1, transformed by `theta`."""
    if not _is_free(size) or len(size) not in (4, 5):
        return functional.affine_grid(theta, list(size), align_corners)
    _check(theta.shape[0] == size[0])
    axes = size[2:]
    rank = len(axes)
    grid = theta[:, :, rank].reshape(-1, *[1] * rank, rank)
    for axis, extent in enumerate(axes):
        positions = _arange(extent).to(theta.dtype)
        last = extent - 1
        if align_corners:
            at = (2 * positions - last) / _full((), last, dtype=theta.dtype).clamp(min=1)
        else:
            at = (2 * positions - last) / _full((), extent, dtype=theta.dtype)
        column = theta[:, :, rank - 1 - axis].reshape(-1, *[1] * rank, rank)  # its columns begin with the last axis
        grid = grid + at.reshape(-1, *[1] * (rank - axis)) * column
    return grid


@override(functional.one_hot, reason=FIXES_SIZES)
def one_hot(input: Tensor, num_classes: Any = -1) -> Tensor:
    """`torch.nn.functional.one_hot` with a dynamic number of classes."""
    if not _is_free(num_classes):
        encoding: Tensor = functional.one_hot(input, num_classes)
        return encoding
    hits: Tensor = input.unsqueeze(-1) == _arange(num_classes)
    return hits.to(torch.int64)


@override(torch.Tensor.fill_diagonal_, reason=FIXES_SIZES)
def fill_diagonal_(input: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """`torch.Tensor.fill_diagonal_`: with `wrap`, the diagonal of a tall matrix starts again after a free row."""
    if not _is_free(input.shape) or input.dim() < 2:
        return input.fill_diagonal_(fill_value, wrap)
    first, *others = (
        _arange(size).reshape(-1, *[1] * (input.dim() - 1 - axis)) for axis, size in enumerate(input.shape)
    )
    if input.dim() > 2:
        for size in input.shape[1:]:
            _check(size == input.shape[0])
    if wrap and input.dim() == 2:
        on = torch.remainder(others[0] - first, input.shape[1] + 1) == 0
    else:
        on = functools.reduce(torch.logical_and, [first == other for other in others])
    if not input.is_floating_point() and not input.is_complex() and isinstance(fill_value, float):
        fill_value = bool(fill_value) if input.dtype == torch.bool else int(fill_value)
    return input.masked_fill_(on, fill_value)


@override(torch.adaptive_avg_pool1d, reason=FIXES_SIZES)
def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Compute `torch.nn.functional.adaptive_avg_pool1d` on images of one row, whose operator takes dynamic sizes."""
    (size,) = _as_list(output_size)
    if not _is_free(size):
        return functional.adaptive_avg_pool1d(input, output_size)
    return functional.adaptive_avg_pool2d(input.unsqueeze(-2), (1, size)).squeeze(-2)


@override(functional.interpolate, reason=FIXES_SIZES)
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """`torch.nn.functional.interpolate` by factors that are computed from sizes, and mode `area` along one axis."""
    function: Any = functional.interpolate
    if mode == "area" and input.dim() == 3 and _is_free(input.shape):
        picture = [None if value is None else (1, *_as_list(value)) for value in (size, scale_factor)]
        image: Tensor = function(input.unsqueeze(-2), *picture, mode)
        return image.squeeze(-2)
    if size is not None or recompute_scale_factor or mode == "area" or not _is_free(scale_factor):
        options = {"recompute_scale_factor": recompute_scale_factor, "antialias": antialias}
        plain: Tensor = function(input, size, scale_factor, mode, align_corners, **options)
        return plain
    if mode not in _MODES or antialias or not input.is_floating_point():
        raise CaptureError(
            f"the scale_factor of interpolate is computed from sizes, in mode {mode} for {input.dtype}",
            hint="pass the sizes of the result, size=(h, w), in place of scale_factor",
        )
    factors = scale_factor if isinstance(scale_factor, Sequence) else [scale_factor] * (input.dim() - 2)
    sizes = [_whole(_real(extent) * factor) for extent, factor in zip(input.shape[2:], factors, strict=True)]
    if align_corners:
        corners: Tensor = function(input, sizes, None, mode, align_corners)
        return corners
    resized = input.to(torch.promote_types(input.dtype, torch.float32))
    for axis, (extent, factor) in enumerate(zip(sizes, factors, strict=True), 2):
        resized = _resized(resized, axis, extent, factor, is_cubic=mode == "bicubic")
    return resized.to(input.dtype)


_MODES = frozenset({"linear", "bilinear", "bicubic", "trilinear"})
"""Modes whose elements are weighted sums along each axis. Which element is nearest depends on PyTorch's kernel."""
_CUBIC = -0.75
"""The `A` of PyTorch's cubic convolution."""
_real: Any = torch.sym_float
_whole: Any = torch.sym_int


def _resized(input: Tensor, axis: int, size: Any, factor: Any, *, is_cubic: bool) -> Tensor:
    """Return an input resized along one axis, with coordinates by the factor, not by the two sizes.

    As PyTorch does, these are computed in the type of the elements, and linear interpolation to the same size copies.
    """
    extent, count = input.shape[axis], input.dim()
    positions = _arange(size).to(input.dtype)
    source = (positions + 0.5) * _full((), 1.0 / _real(factor), dtype=input.dtype) - 0.5
    if not is_cubic:
        copies = _full((), size, dtype=torch.int64) == _full((), extent, dtype=torch.int64)
        source = torch.where(copies, positions, source.clamp(min=0))
    low = source.floor()
    share = source - low
    weights = _cubic_weights(share) if is_cubic else {0: 1 - share, 1: share}
    parts = []
    for step, weight in weights.items():
        index = (low + step).to(torch.int64).clamp(min=0, max=extent - 1)
        parts.append(input.index_select(axis, index) * weight.reshape(-1, *[1] * (count - 1 - axis)))
    return functools.reduce(torch.add, parts)


def _cubic_weights(share: Tensor) -> dict[int, Tensor]:
    """Return the weights of the four elements around a place, by their distance from the one below it."""

    def inner(x: Tensor) -> Tensor:
        return ((_CUBIC + 2) * x - (_CUBIC + 3)) * x * x + 1

    def outer(x: Tensor) -> Tensor:
        return ((_CUBIC * x - 5 * _CUBIC) * x + 8 * _CUBIC) * x - 4 * _CUBIC

    return {-1: outer(share + 1), 0: inner(share), 1: inner(1 - share), 2: outer(2 - share)}


def _as_list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, Sequence) else (value,)


@override(torch.mean, torch.Tensor.mean, reason=FIXES_SIZES)
def mean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, **options: Any) -> Tensor:
    """`torch.mean`; of complex tensors as the means of their two parts."""
    result_dtype = input.dtype if dtype is None else dtype
    if not result_dtype.is_complex or not _is_free(input.shape) or options:
        return torch.mean(input, dim, keepdim, dtype=dtype, **options)
    axes = [dim] if isinstance(dim, int) else [*(dim or range(input.dim()))]
    parts = torch.view_as_real(input.to(result_dtype))
    # the parts are a new last axis, so axes must not be counted from the end
    averages = parts.mean([axis % input.dim() for axis in axes], keepdim) if axes else parts
    return torch.view_as_complex(averages.contiguous())


@override(torch.Tensor.new_tensor, reason=FIXES_SIZES)
def new_tensor(input: Tensor, data: Any, *, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
    """`torch.Tensor.new_tensor` of data with dynamic sizes."""
    if not _is_free(data):
        return input.new_tensor(data, dtype=dtype, **options)
    return _of_numbers(data, dtype or input.dtype)


@override(torch.as_tensor, reason=FIXES_SIZES)
def as_tensor(data: Any, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
    """`torch.as_tensor` of data with dynamic sizes."""
    if isinstance(data, Tensor) or not _is_free(data):
        return torch.as_tensor(data, dtype=dtype, **options)
    is_float = any(isinstance(leaf, float | torch.SymFloat) for leaf in pytree.tree_leaves(data))
    return _of_numbers(data, dtype or (torch.get_default_dtype() if is_float else torch.int64))


@override(_shape_as_tensor, reason=FIXES_SIZES)
def shape_as_tensor(input: Tensor) -> Tensor:
    """`torch._shape_as_tensor`: the sizes of a tensor."""
    return _of_numbers(list(input.shape), torch.int64)


def _of_numbers(data: Any, dtype: torch.dtype) -> Tensor:
    """Return a tensor of nested lists of numbers and sizes; PyTorch would fix the sizes."""
    if isinstance(data, list | tuple):
        return torch.stack([_of_numbers(item, dtype) for item in data])
    tensor: Tensor = data.to(dtype) if isinstance(data, Tensor) else _full((), data, dtype=dtype)
    return tensor


def _is_free(sizes: Any) -> bool:
    return any(isinstance(size, _SYMBOLIC) for size in pytree.tree_leaves(sizes))
