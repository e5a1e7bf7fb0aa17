"""Quantised tensors while a model is captured: integers as float32, with scale and zero point."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from t2n_core.errors import CaptureError
from t2n_core.torch_graph.compat.behaviour import QUANTIZE_ROUNDS_FIRST
from t2n_core.torch_graph.custom_ops.integer_arithmetic import bounded

LIMITS = {torch.quint8: (0, 255), torch.qint8: (-128, 127)}
Call = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]


class QuantisedTensor:
    """A quantised tensor: its `integers`, as float32, with scale, zero point and dtype."""

    of_calls: Call | None = None
    """Computes a function of PyTorch with quantised tensors among its arguments."""

    def __init__(self, integers: Tensor, scale: float, zero: int, dtype: torch.dtype = torch.quint8) -> None:
        self.integers, self.scale, self.zero, self.dtype = integers, float(scale), int(zero), dtype

    is_quantized = True

    @property
    def centred(self) -> Tensor:
        """Return the integers minus the zero point: real values in units of the scale."""
        return self.integers - self.zero if self.zero else self.integers

    @property
    def limits(self) -> tuple[int, int]:
        return LIMITS[self.dtype]

    @property
    def shape(self) -> torch.Size:
        return self.integers.shape

    @property
    def ndim(self) -> int:
        return self.integers.ndim

    @property
    def device(self) -> torch.device:
        return self.integers.device

    def like(self, integers: Tensor) -> QuantisedTensor:
        """Return other integers on the same grid."""
        return QuantisedTensor(integers, self.scale, self.zero, self.dtype)

    def real(self) -> Tensor:
        return self.centred * single(self.scale)

    def __len__(self) -> int:
        return len(self.integers)

    def __getitem__(self, index: Any) -> Any:
        return self._call(torch.Tensor.__getitem__, index)

    def __getattr__(self, name: str) -> Any:
        method = getattr(torch.Tensor, name, None)
        if name.startswith("__") or not callable(method):
            raise AttributeError(f"a quantised tensor has no `{name}`")
        return functools.partial(self._call, method)

    def _call(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        assert QuantisedTensor.of_calls is not None
        return QuantisedTensor.of_calls(function, (self, *args), kwargs)

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Make PyTorch accept quantised tensors where it accepts tensors."""
        assert QuantisedTensor.of_calls is not None
        return QuantisedTensor.of_calls(function, args, kwargs or {})


def single(x: float) -> float:
    """Return a scale rounded to float32, in which PyTorch computes with scales."""
    value: float = struct.unpack("f", struct.pack("f", x))[0]
    return value


def reciprocal(scale: float) -> float:
    """Return 1 / scale in float32."""
    return single(1.0 / single(scale))


def requantise(real: Tensor, scale: float, zero: int, dtype: torch.dtype, relu: bool = False) -> QuantisedTensor:
    """Quantise real values in units of the new scale: they are rounded to even, then the zero point is added."""
    low, high = LIMITS[dtype]
    rounded = torch.round(real)
    moved = rounded + zero if zero else rounded
    return QuantisedTensor(bounded(moved, max(low, zero) if relu else low, high), scale, zero, dtype)


def round_with_zero_point(
    real: Tensor, scale: float, zero: int, dtype: torch.dtype, relu: bool = False
) -> QuantisedTensor:
    """Quantise like `requantise`, where PyTorch adds the zero point before it rounds, which changes ties."""
    low, high = LIMITS[dtype]
    moved = real + zero if zero else real
    return QuantisedTensor(bounded(torch.round(moved), max(low, zero) if relu else low, high), scale, zero, dtype)


round_as_quantize = requantise if QUANTIZE_ROUNDS_FIRST else round_with_zero_point
"""Quantises real values in units of the scale, in the order of operations of `torch.quantize_per_tensor`."""


def quantise(x: Tensor, scale: float, zero: int, dtype: torch.dtype, relu: bool = False) -> QuantisedTensor:
    """Quantise real values, with the order of rounding and zero point of the installed PyTorch.

    A PyTorch that rounds x / scale + zero once uses a fused multiply-add: without one, 7 of 6 million random values are
    off by one. Raises CaptureError for an unsupported dtype.
    """
    if dtype not in LIMITS:
        raise CaptureError(f"quantised tensors of {dtype} are not supported", hint="quint8 and qint8 are")
    return round_as_quantize(x * reciprocal(scale), scale, zero, dtype, relu)
