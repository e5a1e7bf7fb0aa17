"""Linear layers and convolutions of quantised tensors, with the rounding of PyTorch's backend.

With acc = Σ (x - zero)·w, exact, and m = input scale · weight scale, everything in float32 and rounded to even:

| backend | output |
|---|---|
| fbgemm, and x86 for linear layers | round((acc + b / m) · (m / scale)) + zero |
| onednn, and x86 for convolutions | round((acc · m + b) · (1 / scale) + zero) |
| qnnpack | round((acc + round(b / m)) · (m / scale)) + zero |

The sums are exact below 2^24; beyond, they are as exact as float32 is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from t2n_core.rewriter.quantised.grid import QuantisedTensor, reciprocal, requantise, round_with_zero_point, single
from t2n_core.rewriter.quantised.packed import PackedWeight
from t2n_core.torch_graph.compat.private import _is_vnni_supported
from t2n_core.torch_graph.custom_ops.integer_arithmetic import whole_sums

_CONVOLUTIONS = {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}
_TRANSPOSED = {3: F.conv_transpose1d, 4: F.conv_transpose2d, 5: F.conv_transpose3d}
_ONEDNN_GROUPS = 100
"""Convolutions with more groups than this are computed by fbgemm if the engine is x86."""


class Rounding(StrEnum):
    """A formula of the table above."""

    FBGEMM = "fbgemm"
    ONEDNN = "onednn"
    QNNPACK = "qnnpack"


def rounding_of(engine: str, weight: PackedWeight) -> Rounding:
    """Return the formula by which an engine computes a product with this weight."""
    if engine != "x86":
        return Rounding(engine)
    is_convolution = weight.stored.dim() > 2
    has_vnni = _is_vnni_supported()
    symmetric = not weight.zeros and not any(weight.output_padding)
    if is_convolution and has_vnni and symmetric and weight.groups <= _ONEDNN_GROUPS:
        return Rounding.ONEDNN
    return Rounding.FBGEMM


@dataclass(frozen=True, slots=True)
class Products:
    """Computes products as one engine of PyTorch does."""

    engine: str

    def product(
        self,
        x: QuantisedTensor,
        weight: PackedWeight,
        scale: float,
        zero: int,
        relu: bool = False,
        plus: QuantisedTensor | None = None,
    ) -> QuantisedTensor:
        """Return the product of a quantised tensor and a weight on a grid; `plus` is added before the rounding."""
        acc = sums(x.centred, weight)
        factor = channels(weight, weight.scales, acc.dim()) * single(x.scale)
        bias = None if weight.bias is None else channels(weight, weight.bias, acc.dim())
        rounding = rounding_of(self.engine, weight)
        if rounding is Rounding.ONEDNN:
            real = acc * factor
            real = real if bias is None else real + bias
            real = real if plus is None else real + plus.real()
            return round_with_zero_point(real * reciprocal(scale), scale, zero, x.dtype, relu)
        if bias is not None:
            in_sums = bias / factor
            acc = acc + (torch.round(in_sums) if rounding is Rounding.QNNPACK else in_sums)
        return requantise(acc * (factor / single(scale)), scale, zero, x.dtype, relu)

    def product_with_activation(
        self, x: QuantisedTensor, weight: PackedWeight, scale: float, zero: int, then: Callable[[Tensor], Tensor]
    ) -> QuantisedTensor:
        """Return a product with an activation before the rounding, as in onednn."""
        real = real_product(x.centred, single(x.scale), weight)
        return round_with_zero_point(then(real) * reciprocal(scale), scale, zero, x.dtype)


def sums(x: Tensor, weight: PackedWeight) -> Tensor:
    """Return the sums of products of centred integers, of a linear layer or a convolution."""
    w: Any = weight.centred()
    if w.dim() == 2:
        return whole_sums(F.linear(x, w))
    options = {"stride": tuple(weight.stride), "padding": tuple(weight.padding), "dilation": tuple(weight.dilation)}
    flat = x.dim() == 3 and w.dim() == 4  # a 1-d convolution is packed as a 2-d one
    if flat:
        w = w.squeeze(2)
        options = {name: numbers[1:] if len(numbers) > 1 else numbers for name, numbers in options.items()}
    if weight.transposed:
        more = tuple(weight.output_padding)[int(flat) :]
        return whole_sums(_TRANSPOSED[x.dim()](x, w, None, output_padding=more, groups=weight.groups, **options))
    return whole_sums(_CONVOLUTIONS[x.dim()](x, w, None, groups=weight.groups, **options))


def channels(weight: PackedWeight, numbers: Tensor, rank: int) -> Tensor:
    """Return one value per output channel, in a shape that broadcasts against a result of this rank."""
    if weight.stored.dim() == 2 or numbers.dim() == 0:
        return numbers
    return numbers.reshape(-1, *[1] * (rank - 2))


def real_product(x: Tensor, scale: Any, weight: PackedWeight) -> Tensor:
    """Return the float product of centred integers of this scale and a weight, plus the bias."""
    acc = sums(x, weight)
    real: Tensor = acc * (channels(weight, weight.scales, acc.dim()) * scale)
    return real if weight.bias is None else real + channels(weight, weight.bias, acc.dim())
