"""Quantisation in real arithmetic: rounding to a grid, and conversion from and to the grid's integers.

Models converted by pt2e use the operators of `quantized_decomposed`, from `torch.ao`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from t2n_core.torch_graph.custom_ops import integer_arithmetic
from t2n_core.torch_graph.overrides.registry import override
from t2n_core.torch_graph.simplify.decompositions import decomposition

_STATIC = "its kernel does not support dynamic sizes"


def _levels(x: Tensor, scale: Any, zero_point: Any, low: int, high: int) -> Tensor:
    """Return the indices of the grid points, in floating point."""
    levels: Tensor = (torch.round(x * (1.0 / scale)) + zero_point).clamp(low, high)
    return levels


def _along(x: Tensor, channels: Tensor, axis: int) -> Tensor:
    shape = [1] * x.dim()
    shape[axis] = x.shape[axis]
    return channels.to(torch.float32).reshape(shape)


@override(torch.fake_quantize_per_tensor_affine, reason=_STATIC)
@decomposition("aten::fake_quantize_per_tensor_affine.default", "aten::fake_quantize_per_tensor_affine.tensor_qparams")
def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> Tensor:
    values: Tensor = (_levels(input, scale, zero_point, quant_min, quant_max) - zero_point) * scale
    return values


@override(torch.fake_quantize_per_channel_affine, reason=_STATIC)
@decomposition("aten::fake_quantize_per_channel_affine")
def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    scales, zeros = _along(input, scale, axis), _along(input, zero_point, axis)
    return (_levels(input, scales, zeros, quant_min, quant_max) - zeros) * scales


@decomposition("quantized_decomposed::quantize_per_tensor")
def quantize_per_tensor(
    input: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int, dtype: torch.dtype
) -> Tensor:
    return _levels(input, scale, zero_point, quant_min, quant_max).to(dtype)


@decomposition("quantized_decomposed::dequantize_per_tensor")
def dequantize_per_tensor(
    input: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int, dtype: torch.dtype,
    *, out_dtype: torch.dtype | None = None,
) -> Tensor:  # fmt: skip
    if isinstance(scale, float) and isinstance(zero_point, int) and out_dtype in (None, torch.float32):
        return integer_arithmetic.dequantised(input, scale, zero_point)
    values: Tensor = (input.to(out_dtype or torch.float32) - zero_point) * scale
    return values


@decomposition("quantized_decomposed::quantize_per_channel")
def quantize_per_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, quant_min: int, quant_max: int, dtype: torch.dtype
) -> Tensor:
    levels = _levels(input, _along(input, scales, axis), _along(input, zero_points, axis), quant_min, quant_max)
    return levels.to(dtype)


@decomposition("quantized_decomposed::dequantize_per_channel")
def dequantize_per_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor | None, axis: int, quant_min: int, quant_max: int,
    dtype: torch.dtype, *, out_dtype: torch.dtype | None = None,
) -> Tensor:  # fmt: skip
    if out_dtype in (None, torch.float32):
        return integer_arithmetic.dequantised_along(input, scales, zero_points, axis)
    wide = input.to(out_dtype or torch.float32)
    zeros = 0.0 if zero_points is None else _along(input, zero_points, axis)
    return (wide - zeros) * _along(input, scales, axis)


@decomposition("t2n_numbers::dequantised")
def dequantised(numbers: Tensor, scale: float, zero: int) -> Tensor:
    values: Tensor = (numbers.to(torch.float32) - zero) * scale
    return values


@decomposition("t2n_numbers::dequantised_along")
def dequantised_along(numbers: Tensor, scales: Tensor, zeros: Tensor | None, axis: int) -> Tensor:
    wide = numbers.to(torch.float32)
    return (wide if zeros is None else wide - _along(numbers, zeros, axis)) * _along(numbers, scales, axis)
