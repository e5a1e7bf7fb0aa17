"""Type promotion as PyTorch does it, for operands that are graph values, Python numbers or symbolic sizes."""

from __future__ import annotations

import functools
from typing import Any, TypeAlias

import numpy as np
import sympy
import torch

from t2n_core.nnef.emitter import Emitter, Operand
from t2n_core.nnef.graph import BOOL, FLOAT16, FLOAT32, Value
from t2n_core.op.dtypes import numpy_dtype, torch_dtype

Tensorlike: TypeAlias = "Value | bool | int | float | sympy.Expr"
"""An argument of type `Tensor` or `Scalar` in a torch schema."""


def operand(g: Emitter, value: Tensorlike, dtype: np.dtype[Any]) -> Operand:
    """Return `value` as an operand of an operation in `dtype`: a value of the graph, or a Python number."""
    if isinstance(value, Value):
        return g.cast(value, dtype)
    return g.size(value, dtype) if isinstance(value, sympy.Expr) else number(value, dtype)


def number(value: bool | int | float, dtype: np.dtype[Any]) -> bool | int | float:
    """Return a Python number as an element of a dtype; one out of the range of integers wraps, as in PyTorch."""
    if dtype.kind in "iu":
        return int(np.asarray(int(value)).astype(dtype))
    return bool(value) if dtype.kind == "b" else value


def tensor(g: Emitter, value: Tensorlike, dtype: np.dtype[Any]) -> Value:
    """Return `value` as a value of the graph, of that dtype."""
    result = operand(g, value, dtype)
    return result if isinstance(result, Value) else g.constant(np.asarray(result, dtype=dtype))


def pair(g: Emitter, a: Tensorlike, b: Tensorlike) -> tuple[Value, Value]:
    """Return both operands in the dtype of the result."""
    return tensor(g, a, g.output.dtype), tensor(g, b, g.output.dtype)


def result_type(*operands: Tensorlike) -> np.dtype[Any]:
    """`torch.result_type`: tensors with axes before tensors of rank 0 before Python numbers, category by category."""
    examples = [_example(o) for o in operands]
    first: Any = examples[0]
    if len(examples) == 1:
        return numpy_dtype(first.dtype if isinstance(first, torch.Tensor) else torch.result_type(first, first))
    return numpy_dtype(functools.reduce(_combine, examples[1:], first))


def _combine(a: Any, b: Any) -> Any:
    left = torch.empty((1,), dtype=a) if isinstance(a, torch.dtype) else a
    return torch.result_type(left, b)


def _example(value: Tensorlike) -> Any:
    if isinstance(value, Value):
        return torch.empty((1,) * min(value.rank, 1), dtype=torch_dtype(value.dtype))
    return 1 if isinstance(value, sympy.Expr) else value


def widen_float16(g: Emitter, value: Value) -> Value:
    """Return float16 as float32, in which PyTorch computes it too and for which every version has all operators."""
    return g.cast(value, FLOAT32) if value.dtype == FLOAT16 else value


def as_numbers(g: Emitter, value: Value) -> Value:
    """Return booleans as integers or floats, which all versions can compare and sum, and float16 as float32."""
    return g.cast(value, g.truth_dtype) if value.dtype == BOOL else widen_float16(g, value)


def wide_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return FLOAT32 if dtype == FLOAT16 else dtype


def wide_input(g: Emitter, value: Tensorlike) -> Value:
    """Return the operand of a formula whose result is cast to `g.output.dtype` at its end."""
    return tensor(g, value, wide_dtype(g.output.dtype))


def comparable(g: Emitter, *operands: Tensorlike) -> list[Operand]:
    """Return operands in the dtype in which PyTorch compares them, but bool as numbers, and float16 as float32.

    Versions since 0.21 cannot compare bool, and 0.19 cannot compare float16.
    """
    dtype = wide_dtype(result_type(*operands))
    promoted_operands = [operand(g, o, dtype) for o in operands]
    return [widen_bool(g, o) for o in promoted_operands]


def widen_bool(g: Emitter, value: Operand) -> Operand:
    if isinstance(value, Value):
        return g.cast(value, g.truth_dtype) if value.dtype == BOOL else value
    return int(value) if isinstance(value, bool) else value
