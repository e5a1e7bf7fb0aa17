"""Sums, products, concatenations, activations, pools and norms of quantised tensors, with PyTorch's own rounding."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from t2n_core.rewriter.quantised.grid import (
    QuantisedTensor,
    quantise,
    reciprocal,
    requantise,
    round_as_quantize,
    round_with_zero_point,
    single,
)
from t2n_core.torch_graph.custom_ops.integer_arithmetic import bounded


# ------------------------------------------------------------------------------------------------ two operands
def add(a: Any, b: Any, scale: float = 1.0, zero: int = 0, relu: bool = False) -> QuantisedTensor:
    if not (isinstance(a, QuantisedTensor) and isinstance(b, QuantisedTensor)):
        return add_scalar(*_grid_first(a, b), relu)
    return requantise((a.real() + b.real()) * reciprocal(scale), scale, zero, a.dtype, relu)


def mul(a: Any, b: Any, scale: float = 1.0, zero: int = 0, relu: bool = False) -> QuantisedTensor:
    if not (isinstance(a, QuantisedTensor) and isinstance(b, QuantisedTensor)):
        return mul_scalar(*_grid_first(a, b), relu)
    factor = single(single(single(a.scale) * single(b.scale)) * reciprocal(scale))
    return requantise((a.centred * b.centred) * factor, scale, zero, a.dtype, relu)


def _grid_first(a: Any, b: Any) -> tuple[QuantisedTensor, float]:
    return (a, float(b)) if isinstance(a, QuantisedTensor) else (b, float(a))


def add_scalar(x: QuantisedTensor, number: float, relu: bool = False) -> QuantisedTensor:
    """Return x + number: the same integers with another zero point, as long as that is on the grid."""
    low, high = x.limits
    scale = single(x.scale)
    steps = round(number / scale)
    zero = x.zero - steps
    if not low <= zero <= high:
        end, zero = (high, low) if zero < low else (low, high)
        wider = abs(end - (x.zero - steps)) / (high - low) * scale
        return requantise((x.centred + steps) * single(scale * reciprocal(wider)), wider, zero, x.dtype, relu)
    shifted = QuantisedTensor(x.integers, x.scale, zero, x.dtype)
    return rectify(shifted) if relu else shifted


def mul_scalar(x: QuantisedTensor, number: float, relu: bool = False) -> QuantisedTensor:
    """Return x · number: the same integers with another scale, mirrored if the number is negative."""
    low, high = x.limits
    if number > 0:
        product = QuantisedTensor(x.integers, x.scale * number, x.zero, x.dtype)
    elif number == 0:
        product = QuantisedTensor(torch.zeros_like(x.integers), 0.1, 0, x.dtype)
    else:
        product = QuantisedTensor(high + low - x.integers, -x.scale * number, high + low - x.zero, x.dtype)
    return rectify(product) if relu else product


def matmul(a: QuantisedTensor, b: QuantisedTensor, scale: float, zero: int) -> QuantisedTensor:
    return quantise(torch.matmul(a.real(), b.real()), scale, zero, a.dtype)


def cat(
    tensors: Sequence[QuantisedTensor], dim: int = 0, scale: float | None = None, zero: int | None = None
) -> QuantisedTensor:
    """Return the concatenation of the tensors on one grid, by default the first one's."""
    first = tensors[0]
    scale, zero = (first.scale, first.zero) if scale is None or zero is None else (scale, zero)
    moved = [
        t.integers if (t.scale, t.zero) == (scale, zero) else _requantise_to(t, scale, zero).integers for t in tensors
    ]
    return QuantisedTensor(torch.cat(moved, dim), scale, zero, first.dtype)


def _requantise_to(x: QuantisedTensor, scale: float, zero: int) -> QuantisedTensor:
    return quantise(x.real(), scale, zero, x.dtype)


def stack(tensors: Sequence[QuantisedTensor], dim: int = 0) -> QuantisedTensor:
    axis = dim if dim >= 0 else dim + tensors[0].ndim + 1
    return cat([t.like(t.integers.unsqueeze(axis)) for t in tensors], axis)


# -------------------------------------------------------------------------------------------------- activations
def rectify(x: QuantisedTensor, inplace: bool = False) -> QuantisedTensor:
    return x.like(bounded(x.integers, float(x.zero), float(x.limits[1])))


def clamp(x: QuantisedTensor, min: Any = None, max: Any = None, inplace: bool = False) -> QuantisedTensor:
    low, high = x.limits
    return x.like(
        bounded(x.integers, low if min is None else _integer(x, min), high if max is None else _integer(x, max))
    )


def hardtanh(x: QuantisedTensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> QuantisedTensor:
    return clamp(x, min_val, max_val)


def relu6(x: QuantisedTensor, inplace: bool = False) -> QuantisedTensor:
    return clamp(x, 0.0, 6.0)


def _integer(x: QuantisedTensor, real: float) -> int:
    """Return the integer of the grid that is nearest to a real value."""
    low, high = x.limits
    return min(max(round(single(real) * reciprocal(x.scale)) + x.zero, low), high)


def via_float(
    function: Callable[..., Tensor], scale: float | None = None, zero: int = 0
) -> Callable[..., QuantisedTensor]:
    """Lift a float function to quantised tensors; the result is requantised, by default to the input's grid."""

    def compute(x: QuantisedTensor, *args: Any, inplace: bool = False, **kwargs: Any) -> QuantisedTensor:
        real = function(x.real(), *args, **kwargs)
        if scale is None:
            return quantise(real, x.scale, x.zero, x.dtype)
        return quantise(real, scale, zero + (0 if x.dtype is torch.quint8 else x.limits[0]), x.dtype)

    return compute


def to_grid(function: Callable[..., Tensor], settings: int = 0) -> Callable[..., QuantisedTensor]:
    """Lift a float function to quantised tensors; the last arguments are the grid, after some settings."""

    def compute(x: QuantisedTensor, *args: Any, **kwargs: Any) -> QuantisedTensor:
        scale = kwargs.pop("output_scale", None)
        zero = kwargs.pop("output_zero_point", None)
        rest = list(args)
        if zero is None:
            zero = rest.pop(settings + (scale is None))
        if scale is None:
            scale = rest.pop(settings)
        return quantise(function(x.real(), *rest, **kwargs), float(scale), int(zero), x.dtype)

    return compute


def leaky_relu(x: QuantisedTensor, slope: float, inplace: bool, scale: float, zero: int) -> QuantisedTensor:
    return quantise(F.leaky_relu(x.real(), slope), scale, zero, x.dtype)


# ---------------------------------------------------------------------------------------------- pools and means
def average_pool(
    pool: Callable[..., Tensor], rounding: Callable[..., QuantisedTensor] = round_with_zero_point
) -> Callable[..., QuantisedTensor]:
    """Return an average pool of quantised tensors, on the input's grid."""

    def compute(x: QuantisedTensor, *args: Any, **kwargs: Any) -> QuantisedTensor:
        return rounding(pool(x.centred, *args, **kwargs), x.scale, x.zero, x.dtype)

    return compute


def adaptive_average_pool(pool: Callable[..., Tensor], rank: int) -> Callable[..., QuantisedTensor]:
    """Return an average pool of quantised tensors to an output size, over the last `rank` axes."""

    def compute(x: QuantisedTensor, output_size: Any) -> QuantisedTensor:
        sizes = set(output_size) if isinstance(output_size, list | tuple) else {output_size}
        if sizes == {1}:
            return mean(x, tuple(range(-rank, 0)), keepdim=True)
        return round_with_zero_point(pool(x.centred, output_size), x.scale, x.zero, x.dtype)

    return compute


def mean(x: QuantisedTensor, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> QuantisedTensor:
    """Return the mean as an exact sum times 1 / count: 18 / 36 is a tie, for which engines divide differently."""
    axes = list(range(x.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    counts = [x.shape[axis] for axis in axes]
    total = x.centred.sum(axes, keepdim)
    if all(type(count) is int for count in counts):
        return round_with_zero_point(total * single(1 / math.prod(counts)), x.scale, x.zero, x.dtype)
    return round_with_zero_point(x.centred.mean(axes, keepdim), x.scale, x.zero, x.dtype)


def interpolate(x: QuantisedTensor, *args: Any, **kwargs: Any) -> QuantisedTensor:
    mode = kwargs.get("mode", args[2] if len(args) > 2 else "nearest")
    if mode.startswith("nearest"):
        return x.like(F.interpolate(x.integers, *args, **kwargs))
    return round_as_quantize(F.interpolate(x.centred, *args, **kwargs), x.scale, x.zero, x.dtype)


def pad_spatial(
    x: QuantisedTensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> QuantisedTensor:
    if mode != "constant":
        return x.like(F.pad(x.integers, pad, mode))
    return x.like(F.pad(x.integers, pad, mode, float(_integer(x, value or 0.0))))


# -------------------------------------------------------------------------------------------------------- norms
def batch_norm(
    x: QuantisedTensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    var: Tensor,
    eps: float,
    output_scale: float,
    output_zero_point: int,
    relu: bool = False,
) -> QuantisedTensor:
    slope = 1.0 / torch.sqrt(var + eps)
    slope = slope if weight is None else slope * weight
    offset = (-mean * slope if bias is None else bias - mean * slope) / single(output_scale)
    slope = slope * single(single(x.scale) / single(output_scale))
    each = (-1, *[1] * (x.ndim - 2))
    moved = x.centred * slope.reshape(each) + offset.reshape(each)
    return requantise(moved, output_scale, output_zero_point, x.dtype, relu)


def instance_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    return F.instance_norm(x, weight=weight, bias=bias, eps=eps)
