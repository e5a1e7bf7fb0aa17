"""Evaluate PyTorch's size expressions at many sizes at once."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[Any] | int | float | bool


def _to_int(value: Any) -> Values:
    return np.asarray(value).astype(np.int64)


_FORMS: Mapping[str, Callable[..., Values]] = {
    "Add": lambda *terms: sum(terms[1:], terms[0]),
    "Mul": lambda *factors: math.prod(factors[1:], start=factors[0]),
    "Pow": lambda base, power: np.asarray(base, np.float64) ** power if np.any(power < 0) else base**power,
    "PowByNatural": lambda base, power: base**power,
    "FloatPow": lambda base, power: np.asarray(base, np.float64) ** power,
    "FloorDiv": np.floor_divide,
    "CleanDiv": np.floor_divide,
    "CeilDiv": lambda a, b: -np.floor_divide(-a, b),
    "IntTrueDiv": np.true_divide,
    "FloatTrueDiv": np.true_divide,
    "Mod": np.mod,
    "PythonMod": np.mod,
    "ModularIndexing": lambda a, b, c: np.mod(np.floor_divide(a, b), c),
    "Max": lambda *values: functools.reduce(np.maximum, values),
    "Min": lambda *values: functools.reduce(np.minimum, values),
    "Abs": np.abs,
    "ToFloat": lambda value: np.asarray(value, np.float64),
    "CeilToInt": lambda value: _to_int(np.ceil(value)),
    "FloorToInt": lambda value: _to_int(np.floor(value)),
    "TruncToInt": lambda value: _to_int(np.trunc(value)),
    "TruncToFloat": np.trunc,
    "RoundToInt": lambda value: _to_int(np.round(value)),
    "OpaqueUnaryFn_sqrt": np.sqrt,
    "OpaqueUnaryFn_log2": np.log2,
    "Identity": lambda value: value,
    "Equality": np.equal,
    "Unequality": np.not_equal,
    "StrictLessThan": np.less,
    "LessThan": np.less_equal,
    "StrictGreaterThan": np.greater,
    "GreaterThan": np.greater_equal,
    "And": lambda *values: functools.reduce(np.logical_and, values),
    "Or": lambda *values: functools.reduce(np.logical_or, values),
    "Not": np.logical_not,
}
"""Name of a class of sympy or PyTorch -> its value from its arguments' values."""


def value_of(expression: Any, sizes: Mapping[Any, Values]) -> Values:
    """Return an expression's value for these values of its symbols, numbers or arrays of one shape.

    Raises KeyError for a class of expressions that is not supported.
    """
    if expression.is_Symbol:
        return sizes[expression]
    if expression.is_Integer:
        return int(expression)
    if expression.is_number and not expression.args:
        return float(expression)
    if not expression.args:
        return bool(expression)
    with np.errstate(all="ignore"):
        return _FORMS[type(expression).__name__](*(value_of(part, sizes) for part in expression.args))
