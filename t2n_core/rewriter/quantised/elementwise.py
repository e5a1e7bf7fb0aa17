"""Sums, products, joins, activations, pools and norms of quantised tensors, each with PyTorch's own rounding."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from t2n_core.rewriter.quantised.grid import (
    Grid,
    quantised,
    reciprocal,
    requantised,
    rounded_as_quantize,
    rounded_on,
    single,
)
from t2n_core.torch_graph.stand_ins.whole_numbers import bounded


# ------------------------------------------------------------------------------------------------ two operands
def add(a: Any, b: Any, scale: float = 1.0, zero: int = 0, relu: bool = False) -> Grid:
    if not (isinstance(a, Grid) and isinstance(b, Grid)):
        return add_scalar(*_grid_first(a, b), relu)
    return requantised((a.real() + b.real()) * reciprocal(scale), scale, zero, a.dtype, relu)


def mul(a: Any, b: Any, scale: float = 1.0, zero: int = 0, relu: bool = False) -> Grid:
    if not (isinstance(a, Grid) and isinstance(b, Grid)):
        return mul_scalar(*_grid_first(a, b), relu)
    factor = single(single(single(a.scale) * single(b.scale)) * reciprocal(scale))
    return requantised((a.centred * b.centred) * factor, scale, zero, a.dtype, relu)


def _grid_first(a: Any, b: Any) -> tuple[Grid, float]:
    return (a, float(b)) if isinstance(a, Grid) else (b, float(a))


def add_scalar(x: Grid, number: float, relu: bool = False) -> Grid:
    """Return x + number: the same numbers with another zero point, as long as that is on the grid."""
    low, high = x.limits
    scale = single(x.scale)
    steps = round(number / scale)
    zero = x.zero - steps
    if not low <= zero <= high:
        end, zero = (high, low) if zero < low else (low, high)
        wider = abs(end - (x.zero - steps)) / (high - low) * scale
        return requantised((x.centred + steps) * single(scale * reciprocal(wider)), wider, zero, x.dtype, relu)
    found = Grid(x.numbers, x.scale, zero, x.dtype)
    return rectified(found) if relu else found


def mul_scalar(x: Grid, number: float, relu: bool = False) -> Grid:
    """Return x · number: the same numbers with another scale, mirrored where the number is negative."""
    low, high = x.limits
    if number > 0:
        found = Grid(x.numbers, x.scale * number, x.zero, x.dtype)
    elif number == 0:
        found = Grid(torch.zeros_like(x.numbers), 0.1, 0, x.dtype)
    else:
        found = Grid(high + low - x.numbers, -x.scale * number, high + low - x.zero, x.dtype)
    return rectified(found) if relu else found


def matmul(a: Grid, b: Grid, scale: float, zero: int) -> Grid:
    return quantised(torch.matmul(a.real(), b.real()), scale, zero, a.dtype)


def cat(tensors: Sequence[Grid], dim: int = 0, scale: float | None = None, zero: int | None = None) -> Grid:
    """Return the tensors joined on one grid, that of the first where none is given."""
    first = tensors[0]
    scale, zero = (first.scale, first.zero) if scale is None or zero is None else (scale, zero)
    moved = [t.numbers if (t.scale, t.zero) == (scale, zero) else _moved(t, scale, zero).numbers for t in tensors]
    return Grid(torch.cat(moved, dim), scale, zero, first.dtype)


def _moved(x: Grid, scale: float, zero: int) -> Grid:
    return quantised(x.real(), scale, zero, x.dtype)


def stack(tensors: Sequence[Grid], dim: int = 0) -> Grid:
    place = dim if dim >= 0 else dim + tensors[0].ndim + 1
    return cat([t.like(t.numbers.unsqueeze(place)) for t in tensors], place)


# -------------------------------------------------------------------------------------------------- activations
def rectified(x: Grid, inplace: bool = False) -> Grid:
    return x.like(bounded(x.numbers, float(x.zero), float(x.limits[1])))


def clamped(x: Grid, min: Any = None, max: Any = None, inplace: bool = False) -> Grid:
    low, high = x.limits
    return x.like(bounded(x.numbers, low if min is None else _number(x, min), high if max is None else _number(x, max)))


def hardtanh(x: Grid, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Grid:
    return clamped(x, min_val, max_val)


def relu6(x: Grid, inplace: bool = False) -> Grid:
    return clamped(x, 0.0, 6.0)


def _number(x: Grid, real: float) -> int:
    """Return the number of the grid that is nearest to a real one."""
    low, high = x.limits
    return min(max(round(single(real) * reciprocal(x.scale)) + x.zero, low), high)


def through(function: Callable[..., Tensor], scale: float | None = None, zero: int = 0) -> Callable[..., Grid]:
    """Return a function of grids that computes with real numbers, and rounds to a grid, by default the input's."""

    def computed(x: Grid, *args: Any, inplace: bool = False, **kwargs: Any) -> Grid:
        real = function(x.real(), *args, **kwargs)
        if scale is None:
            return quantised(real, x.scale, x.zero, x.dtype)
        return quantised(real, scale, zero + (0 if x.dtype is torch.quint8 else x.limits[0]), x.dtype)

    return computed


def onto(function: Callable[..., Tensor], settings: int = 0) -> Callable[..., Grid]:
    """Return a function of grids whose grid comes as its last arguments, after some settings of its own."""

    def computed(x: Grid, *args: Any, **kwargs: Any) -> Grid:
        scale = kwargs.pop("output_scale", None)
        zero = kwargs.pop("output_zero_point", None)
        rest = list(args)
        if zero is None:
            zero = rest.pop(settings + (scale is None))
        if scale is None:
            scale = rest.pop(settings)
        return quantised(function(x.real(), *rest, **kwargs), float(scale), int(zero), x.dtype)

    return computed


def leaky_relu(x: Grid, slope: float, inplace: bool, scale: float, zero: int) -> Grid:
    return quantised(F.leaky_relu(x.real(), slope), scale, zero, x.dtype)


# ---------------------------------------------------------------------------------------------- pools and means
def averaged(pool: Callable[..., Tensor], rounding: Callable[..., Grid] = rounded_on) -> Callable[..., Grid]:
    """Return an average pool of grids, on the input's grid."""

    def computed(x: Grid, *args: Any, **kwargs: Any) -> Grid:
        return rounding(pool(x.centred, *args, **kwargs), x.scale, x.zero, x.dtype)

    return computed


def adaptive(pool: Callable[..., Tensor], rank: int) -> Callable[..., Grid]:
    """Return an average pool of grids that takes the size of its output, over the last `rank` axes."""

    def computed(x: Grid, output_size: Any) -> Grid:
        sizes = set(output_size) if isinstance(output_size, list | tuple) else {output_size}
        if sizes == {1}:
            return mean(x, tuple(range(-rank, 0)), keepdim=True)
        return rounded_on(pool(x.centred, output_size), x.scale, x.zero, x.dtype)

    return computed


def mean(x: Grid, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Grid:
    """Return the mean as an exact sum times 1 / count: half of 36 of 36 is a tie, which engines divide differently."""
    axes = list(range(x.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    counts = [x.shape[axis] for axis in axes]
    total = x.centred.sum(axes, keepdim)
    if all(type(count) is int for count in counts):
        return rounded_on(total * single(1 / math.prod(counts)), x.scale, x.zero, x.dtype)
    return rounded_on(x.centred.mean(axes, keepdim), x.scale, x.zero, x.dtype)


def interpolated(x: Grid, *args: Any, **kwargs: Any) -> Grid:
    mode = kwargs.get("mode", args[2] if len(args) > 2 else "nearest")
    if mode.startswith("nearest"):
        return x.like(F.interpolate(x.numbers, *args, **kwargs))
    return rounded_as_quantize(F.interpolate(x.centred, *args, **kwargs), x.scale, x.zero, x.dtype)


def padded(x: Grid, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Grid:
    if mode != "constant":
        return x.like(F.pad(x.numbers, pad, mode))
    return x.like(F.pad(x.numbers, pad, mode, float(_number(x, value or 0.0))))


# -------------------------------------------------------------------------------------------------------- norms
def batch_norm(
    x: Grid, weight: Tensor | None, bias: Tensor | None, mean: Tensor, var: Tensor, eps: float, output_scale: float,
    output_zero_point: int, relu: bool = False,
) -> Grid:  # fmt: skip
    slope = 1.0 / torch.sqrt(var + eps)
    slope = slope if weight is None else slope * weight
    offset = (-mean * slope if bias is None else bias - mean * slope) / single(output_scale)
    slope = slope * single(single(x.scale) / single(output_scale))
    each = (-1, *[1] * (x.ndim - 2))
    moved = x.centred * slope.reshape(each) + offset.reshape(each)
    return requantised(moved, output_scale, output_zero_point, x.dtype, relu)


def instance_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    return F.instance_norm(x, weight=weight, bias=bias, eps=eps)


__all__ = [
    "adaptive", "add", "add_scalar", "averaged", "batch_norm", "cat", "clamped", "hardtanh", "instance_norm",
    "interpolated", "leaky_relu", "matmul", "mean", "mul", "mul_scalar", "onto", "padded", "rectified",
    "relu6", "stack", "through",
]  # fmt: skip
