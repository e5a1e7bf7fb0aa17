"""8-bit weights that stay 8-bit in the archive, and integer arithmetic in floating point."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import FLOAT32, Value
from t2n_core.op.registry import op
from t2n_core.op.weights import TensorWeight, constant_values, with_values
from t2n_core.torch_graph.custom_ops import integer_arithmetic  # noqa: F401  the operators `bounded` and `whole_sums`


@op("t2n_numbers::bounded")
def bounded(g: Emitter, x: Value, low: float, high: float) -> Value:
    """min(max(x, low), high) of values that are never NaN."""
    return g.min(g.max(x, float(low)), float(high))


@op("t2n_numbers::whole_sums")
def whole_sums(g: Emitter, x: Value) -> Value:
    return x


@op("t2n_numbers::whole_sums", target="tract", since="0.23.0")
def whole_sums_rounded(g: Emitter, x: Value) -> Value:
    """Round the sums: without an operation here the engine scales the weights instead of the sums."""
    return g.tract_core_round_even(x)


def _dequantise(g: Emitter, stored: Value, scales: Any, zeros: Any) -> Value:
    """Return (stored - zeros) * scales; for a weight also with its elements, so that other rules treat it as a weight.

    `scales` and `zeros` are scalars, or arrays of the weight's rank.
    """
    wide = g.cast(stored, FLOAT32)
    if np.any(zeros):
        wide = g.sub(wide, _operand(g, zeros))
    if np.any(scales != 1):
        wide = g.mul(wide, _operand(g, scales))
    source = stored.weight
    if not isinstance(source, TensorWeight):
        return wide

    def elements() -> NDArray[Any]:
        result: NDArray[Any] = (source.array().astype(np.float32) - np.float32(zeros)) * np.float32(scales)
        return result

    return with_values(wide, elements)


def _operand(g: Emitter, array: Any) -> Value | float:
    return float(array) if np.ndim(array) == 0 else g.constant(array)


@op("t2n_numbers::dequantised", target="tract")
def dequantised(g: Emitter, numbers: Value, scale: float, zero: int) -> Value:
    return _dequantise(g, numbers, np.float32(scale), np.float32(zero))


@op("t2n_numbers::dequantised_along", target="tract")
def dequantised_along(g: Emitter, numbers: Value, scales: Value, zeros: Value | None, axis: int) -> Value:
    shape = [-1 if index == axis else 1 for index in range(numbers.rank)]
    constants = [None if v is None else constant_values(v) for v in (scales, zeros)]
    if constants[0] is None or (zeros is not None and constants[1] is None):
        raise g.fail("a weight is dequantised by scales that the model computes")
    offsets = np.float32(0) if constants[1] is None else constants[1].astype(np.float32).reshape(shape)
    return _dequantise(g, numbers, constants[0].astype(np.float32).reshape(shape), offsets)
