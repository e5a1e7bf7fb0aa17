"""Steps of integer arithmetic in quantised models, each as one custom operator.

They carry guarantees for lowering rules: there is no NaN, a sum of products is an integer, and an 8-bit weight can stay
as it is in the archive.
"""

from __future__ import annotations

from typing import Any

import torch

library = torch.library.Library("t2n_numbers", "DEF")  # type: ignore[no-untyped-call]


def _bounded(x: torch.Tensor, low: float, high: float) -> torch.Tensor:
    return x.clamp(low, high)


def _whole_sums(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


def _dequantised(numbers: torch.Tensor, scale: float, zero: int) -> torch.Tensor:
    return (numbers.to(torch.float32) - zero) * scale


def _dequantised_along(
    numbers: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor | None, axis: int
) -> torch.Tensor:
    shape = [-1 if index == axis else 1 for index in range(numbers.dim())]
    wide = numbers.to(torch.float32)
    centred = wide if zeros is None else wide - zeros.to(torch.float32).reshape(shape)
    return centred * scales.to(torch.float32).reshape(shape)


for _schema, _computed in {
    "bounded(Tensor x, float low, float high)": _bounded,
    "whole_sums(Tensor x)": _whole_sums,
    "dequantised(Tensor numbers, float scale, int zero)": _dequantised,
    "dequantised_along(Tensor numbers, Tensor scales, Tensor? zeros, int axis)": _dequantised_along,
}.items():
    library.define(f"{_schema} -> Tensor")  # type: ignore[no-untyped-call]
    library.impl(_schema.partition("(")[0], _computed, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
WHOLE_NUMBERS: Any = torch.ops.t2n_numbers
"""The namespace of these operators."""


def bounded(x: torch.Tensor, low: float, high: float) -> torch.Tensor:
    """Return min(max(x, low), high) of a tensor without NaN."""
    result: torch.Tensor = WHOLE_NUMBERS.bounded(x, float(low), float(high))
    return result


def whole_sums(x: torch.Tensor) -> torch.Tensor:
    """Return sums of products of integers, which an engine must not scale before they are complete."""
    sums: torch.Tensor = WHOLE_NUMBERS.whole_sums(x)
    return sums


def dequantised(numbers: torch.Tensor, scale: float, zero: int) -> torch.Tensor:
    """Return (numbers - zero) · scale of integers, as float32; a weight stays as it is in the archive."""
    values: torch.Tensor = WHOLE_NUMBERS.dequantised(numbers, float(scale), int(zero))
    return values


def dequantised_along(
    numbers: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor | None, axis: int
) -> torch.Tensor:
    """Return the same with a scale and a zero point for each index along one axis."""
    values: torch.Tensor = WHOLE_NUMBERS.dequantised_along(numbers, scales, zeros, axis)
    return values
