"""Values that a `graph.quant` quantises: real numbers, each rounded to one of the grid of its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from t2n_core.dialect.tensors import Tensor, datum_type, tensor_of
from t2n_core.errors import UndefinedOperatorError
from t2n_core.nnef.reading.quantisation import Grid
from t2n_core.nnef.reading.tree import Call, Node, Statement

CAST: Final = "tract_core_cast"
_DEFINED: Final = frozenset(
    """add sub mul div min max copy reshape transpose squeeze unsqueeze slice concat stack tile
    tract_core_broadcast""".split()
)
"""Operators that tract computes on the real numbers, or that move elements."""


def on_grid(value: Any, grid: Grid) -> Tensor:
    """Quantise a tensor: real numbers are rounded, ties to even, and integers are the levels themselves.

    Raises InputError for a value that is no tensor.
    """
    tensor = tensor_of(value)
    levels = tensor.array
    if tensor.dtype.kind == "f":
        levels = np.rint(levels / grid.scale + grid.zero_point)
    bounds = np.iinfo(grid.dtype)
    real = (np.clip(levels, bounds.min, bounds.max).astype(np.float64) - grid.zero_point) * grid.scale
    return Tensor(real, np.dtype(np.float32), tensor.is_constant, grid)


def before_rounding(statement: Statement) -> Node:
    """Return the expression of a value that is quantised: of a cast only what is cast, since its type is the grid."""
    call = statement.value
    if not isinstance(call, Call) or call.operator != CAST:
        return call
    return next(value for name, value in call.arguments if name in ("", "input"))


def on_levels(
    name: str, arguments: Mapping[str, Any], operands: Sequence[Tensor], result: Grid | None
) -> Mapping[str, Any]:
    """Return the arguments of an operator whose result has this grid: for a cast of a quantised value, its integers.

    Raises UndefinedOperatorError for an operator that has no definition on quantised operands.
    """
    grids = list(dict.fromkeys(operand.grid for operand in operands))
    grid = next(filter(None, grids), None)
    if grid is None:
        return arguments
    if name == CAST:
        return arguments if datum_type(arguments["to"]).kind == "f" else _with_integers(arguments, grid)
    reason = "has no definition"
    if name in _DEFINED:
        reason = "has no format there for its result" if result is None else "has operands of several formats"
    if name not in _DEFINED or result is None or len(grids) > 1:
        raise UndefinedOperatorError(f"`{name}` of values that graph.quant quantises {reason}", op=name)
    return arguments


def _with_integers(arguments: Mapping[str, Any], grid: Grid) -> Mapping[str, Any]:
    tensor: Tensor = arguments["input"]
    levels = np.rint(tensor.array / grid.scale + grid.zero_point).astype(grid.dtype)
    return {**arguments, "input": Tensor(levels, grid.dtype, tensor.is_constant)}
