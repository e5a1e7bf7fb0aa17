"""Operators by the text of NNEF 1.0.5, where nnef_tools' interpreter gets them wrong or lacks them.

Functions take tensors and attributes by the standard's names; names that Python reserves arrive as `_name_`. Not
covered: the five operators on regions of interest.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from t2n_core.engine.khronos.window import Padding, Window, fold, pad


def align(*tensors: Tensor) -> list[Tensor]:
    """Append the missing trailing axes: NNEF's broadcasting aligns leading axes."""
    rank = max(t.ndim for t in tensors)
    return [t[(...,) + (None,) * (rank - t.ndim)] for t in tensors]


# --------------------------------------------------------------------------------------------------------------- shapes
def slice_indices(first: int, last: int, step: int, extent: int) -> range:
    """Return the indices that `slice` keeps on one axis."""
    if step == 1 and last == 0:  # the historical notation for 'to the end'
        last = extent
    first, last = (v + extent if v < 0 else v for v in (first, last))
    axis = range(extent)
    if step > 0:
        return axis[max(first, 0) : max(last, 0) : step]
    return axis[first : None if last < 0 else last : step] if first >= 0 else axis[:0]


def slice_(
    input: Tensor, axes: Sequence[int], begin: Sequence[int], end: Sequence[int], stride: Sequence[int] = ()
) -> Tensor:
    for axis, first, last, step in zip(axes, begin, end, stride or [1] * len(axes), strict=True):
        keep = slice_indices(first, last, step, input.shape[axis])
        input = input.index_select(axis, torch.tensor(keep, dtype=torch.long, device=input.device))
    return input


# ------------------------------------------------------------------------------------------------------ sliding windows
def box(
    input: Tensor,
    size: Sequence[int],
    border: str = "constant",
    padding: Padding = (),
    stride: Sequence[int] = (),
    dilation: Sequence[int] = (),
    normalize: bool = False,
) -> Tensor:
    """Return the sum of each window, or with `normalize` the mean; border `ignore` excludes the padding."""
    window = Window(input.shape, size, padding, stride, dilation)
    total = window.taps(input, border).sum(-1)
    if not normalize:
        return total
    if border != "ignore":
        return total / math.prod(window.size)
    inside = window.taps(torch.ones_like(input), "constant").sum(-1)
    return total / inside.clamp(min=1)


def mean_around(x: Tensor, size: Sequence[int]) -> Tensor:
    return box(x, size, normalize=True)


def rms_pool(input: Tensor, **window: Any) -> Tensor:
    return box(input.square(), normalize=True, **window).sqrt()


def max_pool_with_index(
    input: Tensor, size: Sequence[int], border: str = "constant", **geometry: Any
) -> tuple[Tensor, Tensor]:
    """Return the largest tap and its index in the window, row by row; border `ignore` excludes the padding."""
    outside = -math.inf if border == "ignore" else 0.0
    values, index = Window(input.shape, size, **geometry).taps(input, border, outside).max(-1)
    return values, index


def sample(input: Tensor, index: Tensor, size: Sequence[int], border: str = "constant", **geometry: Any) -> Tensor:
    """Return the tap at the index."""
    return Window(input.shape, size, **geometry).taps(input, border).take_along_dim(index[..., None], -1)[..., 0]


def desample(
    input: Tensor,
    index: Tensor,
    size: Sequence[int],
    border: str = "constant",
    padding: Padding = (),
    stride: Sequence[int] = (),
    dilation: Sequence[int] = (),
    output_shape: Sequence[int] = (),
) -> Tensor:
    """Add each value to the element at its index in the window."""
    step = list(stride or [1] * input.ndim)
    if not output_shape and not padding:
        output_shape = [n * s for n, s in zip(input.shape, step, strict=True)]
    window = Window(output_shape or input.shape, size, padding, step, dilation)
    if output_shape:
        padded = [n + p + q for n, (p, q) in zip(output_shape, window.padding, strict=True)]
    else:
        padded = [(n - 1) * s + span for n, s, span in zip(input.shape, step, window.span, strict=True)]
    cell = window.view(torch.arange(math.prod(padded), device=input.device).reshape(padded))
    target = cell.take_along_dim(index[..., None], -1)[..., 0]
    flat = input.new_zeros(math.prod(padded)).index_add(0, target.flatten(), input.flatten())
    return pad(flat.reshape(padded), [(-p, -q) for p, q in window.padding])


# ----------------------------------------------------------------------------------------------------------- resampling
def nearest_downsample(input: Tensor, factor: Sequence[int]) -> Tensor:
    for axis, f in enumerate(factor, start=2):
        input = input.index_select(axis, torch.arange(0, input.shape[axis], f, device=input.device))
    return input


def area_downsample(input: Tensor, factor: Sequence[int]) -> Tensor:
    for axis, f in enumerate(factor, start=2):
        input = input.unfold(axis, f, f).mean(-1)
    return input


def multilinear_upsample(
    input: Tensor, factor: Sequence[int], method: str = "symmetric", border: str = "replicate"
) -> Tensor:
    """Interpolate linearly along each spatial axis in turn."""
    for axis, f in enumerate(factor, start=2):
        input = _upsample_axis(input, axis, f, method, border)
    return input


def _upsample_axis(input: Tensor, axis: int, factor: int, method: str, border: str) -> Tensor:
    extent = input.shape[axis]
    out = torch.arange(extent * factor, dtype=torch.float64, device=input.device)
    if method == "aligned":
        where = out * ((extent - 1) / max(extent * factor - 1, 1))
    elif method == "symmetric":
        where = (out - (factor - 1) / 2) / factor
    elif method == "asymmetric":
        where = out / factor
    else:
        raise ValueError(f"method {method!r}")
    left = torch.floor(where + 1e-12).long()
    along = [-1 if a == axis else 1 for a in range(input.ndim)]
    weight = (where - left).clamp(0, 1).to(input.dtype).reshape(along)

    def column(k: Tensor) -> Tensor:
        if border != "constant":
            return input.index_select(axis, fold(k, extent, border))
        inside = ((k >= 0) & (k < extent)).to(input.dtype).reshape(along)
        return input.index_select(axis, k.clamp(0, extent - 1)) * inside

    return torch.lerp(column(left), column(left + 1), weight)


# ------------------------------------------------------------------------------------------ activations, normalisations
def prelu(x: Tensor, alpha: Tensor) -> Tensor:
    x, slope = align(x, alpha)
    return x.clamp(min=0) + slope * x.clamp(max=0)


def selu(x: Tensor, alpha: float = 1.67326319, _lambda_: float = 1.05070102) -> Tensor:
    return _lambda_ * (x.clamp(min=0) + alpha * torch.expm1(x.clamp(max=0)))


def softmax(x: Tensor, axes: Sequence[int] = (1,)) -> Tensor:
    weights = torch.exp(x - x.amax(dim=tuple(axes), keepdim=True))
    return weights / weights.sum(dim=tuple(axes), keepdim=True)


def batch_normalization(
    input: Tensor, mean: Tensor, variance: Tensor, offset: Tensor, scale: Tensor, epsilon: float
) -> Tensor:
    x, mean, variance, offset, scale = align(input, mean, variance, offset, scale)
    return (x - mean) / (variance + epsilon).sqrt() * scale + offset


def local_response_normalization(
    input: Tensor, size: Sequence[int], alpha: float = 1.0, beta: float = 0.5, bias: float = 1.0
) -> Tensor:
    return input * (mean_around(input.square(), size) * alpha + bias).pow(-beta)


def local_mean_normalization(input: Tensor, size: Sequence[int]) -> Tensor:
    return input - mean_around(input, size)


def local_variance_normalization(input: Tensor, size: Sequence[int], bias: float = 0.0, epsilon: float = 0.0) -> Tensor:
    deviation = mean_around(input.square(), size).sqrt() + bias
    return input / deviation.clamp(min=epsilon)


def local_contrast_normalization(input: Tensor, size: Sequence[int], bias: float = 0.0, epsilon: float = 0.0) -> Tensor:
    return local_variance_normalization(local_mean_normalization(input, size), size, bias, epsilon)


# ------------------------------------------------------------------------------------------------------------- integers
def round_(x: Tensor) -> Tensor:
    """Return floor(x + 0.5): ties are rounded up."""
    return (x + 0.5).floor()


def cast(input: Tensor, dtype: Any) -> Tensor:
    """Convert to scalar, integer (towards zero) or logical (not zero)."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return input.ne(0)
    if kind == "f":
        return input if input.is_floating_point() else input.float()
    return (input.trunc() if input.is_floating_point() else input).long()


def arg_reduce(pick: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return the position of the extreme, row by row, over all of the axes together."""

    def reduce(input: Tensor, axes: Sequence[int]) -> Tensor:
        axes = sorted(axes)
        tail = input.movedim(list(axes), list(range(-len(axes), 0))).flatten(-len(axes))
        return functools.reduce(torch.unsqueeze, axes, pick(tail, dim=-1))

    return reduce


# --------------------------------------------------------------------------------------------------------- quantisation
def min_max_linear_quantize(
    x: Tensor, min: Tensor, max: Tensor, bits: int, signed: bool = False, symmetric: bool = False
) -> Tensor:
    x, low, high = align(x, min, max)
    levels = (1 << bits) - (2 if signed and symmetric else 1)
    fraction = (torch.clamp(x, low, high) - low) / (high - low)
    return low + round_(fraction * levels) / levels * (high - low)


def zero_point_linear_quantize(
    x: Tensor, zero_point: Tensor, scale: Tensor, bits: int, signed: bool, symmetric: bool
) -> Tensor:
    x, zero, scale = align(x, zero_point.to(x.dtype), scale)
    top = (1 << (bits - bool(signed))) - 1
    bottom = -(top + (not symmetric)) if signed else 0
    return scale * (torch.clamp(round_(x / scale) + zero, bottom, top) - zero)


def logarithmic_quantize(x: Tensor, max: Tensor, bits: int) -> Tensor:
    x, largest = align(x, max)
    top = largest.log2().ceil()
    exponent = round_(torch.clamp(x.abs().log2(), top - ((1 << bits) - 1), top))
    return x.sign() * exponent.exp2()


OPERATORS: Final[Mapping[str, Callable[..., Any]]] = {
    "pad": pad,
    "slice": slice_,
    "cast": cast,
    "round": round_,
    "box": box,
    "avg_pool": functools.partial(box, normalize=True),
    "rms_pool": rms_pool,
    "max_pool": lambda input, **window: max_pool_with_index(input, **window)[0],
    "argmax_pool": lambda input, **window: max_pool_with_index(input, **window)[1],
    "max_pool_with_index": max_pool_with_index,
    "sample": sample,
    "desample": desample,
    "nearest_downsample": nearest_downsample,
    "area_downsample": area_downsample,
    "multilinear_upsample": multilinear_upsample,
    "local_response_normalization": local_response_normalization,
    "local_mean_normalization": local_mean_normalization,
    "local_variance_normalization": local_variance_normalization,
    "local_contrast_normalization": local_contrast_normalization,
    "batch_normalization": batch_normalization,
    "softmax": softmax,
    "prelu": prelu,
    "selu": selu,
    "softplus": torch.nn.functional.softplus,
    "argmax_reduce": arg_reduce(torch.argmax),
    "argmin_reduce": arg_reduce(torch.argmin),
    "linear_quantize": min_max_linear_quantize,
    "min_max_linear_quantize": min_max_linear_quantize,
    "zero_point_linear_quantize": zero_point_linear_quantize,
    "logarithmic_quantize": logarithmic_quantize,
}
"""Functions by operator, for the interpreter's `custom_operators`: these override its own."""


def install() -> None:
    """Replace the interpreter's pad and slice in its `conv` and `deconv` as well, which call them directly.

    Only for a separate process; this also silences a warning of PyTorch about indexing with a list.
    """
    from nnef_tools.interpreter.pytorch import nnef_operators

    nnef_operators.nnef_pad, nnef_operators.nnef_slice = pad, slice_
