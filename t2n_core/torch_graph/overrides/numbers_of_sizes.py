"""Decompositions for numbers that a model computes from sizes, where PyTorch's operators fix them at capture."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from t2n_core.torch_graph.overrides.registry import FIXES_SIZES, override


def _of_sizes(*plain: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that registers a replacement of these functions for calls with a float computed from sizes."""

    def register(rewrite: Callable[..., Any]) -> Callable[..., Any]:
        for function in plain:

            @functools.wraps(rewrite)
            def either(*args: Any, function: Any = function, **kwargs: Any) -> Any:
                has_symbol = any(isinstance(value, torch.SymFloat) for value in (*args, *kwargs.values()))
                return (rewrite if has_symbol else function)(*args, **kwargs)

            override(function, reason=FIXES_SIZES)(either)
        return rewrite

    return register


def _result(value: Tensor, out: Tensor | None) -> Tensor:
    """Return a value, written into `out` if that is a tensor."""
    return value if out is None else out.copy_(value)


@_of_sizes(functional.layer_norm)
def layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Any = None, bias: Any = None, eps: Any = 1e-5
) -> Tensor:
    """`torch.nn.functional.layer_norm`."""
    axes = list(range(-len(normalized_shape), 0))
    variance, mean = torch.var_mean(input, axes, correction=0, keepdim=True)
    normal = (input - mean) * torch.rsqrt(variance + eps)
    scaled = normal if weight is None else normal * weight
    return scaled if bias is None else scaled + bias


@_of_sizes(functional.rms_norm)
def rms_norm(input: Tensor, normalized_shape: Sequence[int], weight: Any = None, eps: Any = None) -> Tensor:
    """`torch.nn.functional.rms_norm`."""
    axes = list(range(-len(normalized_shape), 0))
    normal = input * torch.rsqrt(input.square().mean(axes, keepdim=True) + eps)
    return normal if weight is None else normal * weight


@_of_sizes(functional.pad)
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: Any = None) -> Tensor:
    """`torch.nn.functional.pad` with a constant."""
    inside = functional.pad(torch.ones_like(input, dtype=torch.bool), pad)
    return torch.where(inside, functional.pad(input, pad), value)


@_of_sizes(functional.leaky_relu)
def leaky_relu(input: Tensor, negative_slope: Any = 0.01, inplace: bool = False) -> Tensor:
    """`torch.nn.functional.leaky_relu`."""
    return _result(torch.where(input > 0, input, input * negative_slope), input if inplace else None)


@_of_sizes(functional.elu)
def elu(input: Tensor, alpha: Any = 1.0, inplace: bool = False) -> Tensor:
    """`torch.nn.functional.elu`."""
    return _result(torch.where(input > 0, input, input.expm1() * alpha), input if inplace else None)


@_of_sizes(functional.softplus)
def softplus(input: Tensor, beta: Any = 1, threshold: Any = 20) -> Tensor:
    """`torch.nn.functional.softplus`: the input itself beyond the threshold."""
    scaled = input * beta
    return torch.where(scaled > threshold, input, scaled.clamp(max=threshold).exp().log1p() / beta)


@_of_sizes(functional.hardtanh)
def hardtanh(input: Tensor, min_val: Any = -1.0, max_val: Any = 1.0, inplace: bool = False) -> Tensor:
    """`torch.nn.functional.hardtanh`."""
    return _result(input.clamp(min_val, max_val), input if inplace else None)


@_of_sizes(torch.addmm, torch.Tensor.addmm, torch.baddbmm, torch.Tensor.baddbmm)
def add_product(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`torch.addmm` and `torch.baddbmm`."""
    product: Tensor = input * beta + (mat1 @ mat2) * alpha
    return product
