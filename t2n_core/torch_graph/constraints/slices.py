"""Compute the begin and the length of a slice, as sizes that are right on both sides of every bound.

PyTorch's length is an expression such as `Max(0, T - Min(2, T))`, or a new symbol if the sign of a bound is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from t2n_core.errors import CaptureError
from t2n_core.nnef.sizes.dims import Dim, as_dim, floor_div, maximum, within
from t2n_core.torch_graph.constraints.dynamic_axes import SymbolTable

SLICES = frozenset({"aten::slice.Tensor", "aten::slice_copy.Tensor"})


def decide_length(table: SymbolTable, arguments: Mapping[str, Any], length: Any) -> Dim | None:
    """Return the begin of a slice of a dynamic axis, counted from the front, and fix its length in the table.

    None for a static slice. Raises CaptureError for a bound that depends on data, or that counts from the front at some
    sizes in range and from the end at others.
    """
    source, dim, start, end, step = (_value(arguments[name]) for name in ("self", "dim", "start", "end", "step"))
    size = source.shape[dim]
    if not any(isinstance(value, torch.SymInt) for value in (size, start, end, step, length)) or not isinstance(
        step, int
    ):
        return None
    full_size = table.dim(size)
    begin = _clamp(table, start, full_size, 0)
    stop = _clamp(table, end, full_size, full_size)
    if isinstance(length, torch.SymInt) and not table.knows(length.node.expr):
        count = floor_div(as_dim(maximum(0, as_dim(stop - begin)) + step - 1), step)
        table.decide(length.node.expr, count)
    return begin


def _value(argument: Any) -> Any:
    return argument.meta.get("val") if isinstance(argument, torch.fx.Node) else argument


def _clamp(table: SymbolTable, bound: Any, full_size: Dim, missing: Dim) -> Dim:
    """Return a bound within [0, whole]."""
    if bound is None:
        return missing
    try:
        return within(table.dim(bound), full_size)
    except ValueError as wrong:
        raise CaptureError(
            f"a bound of this slice depends on its sign: {wrong}", hint="slice up to max(0, ...), which has one sign"
        ) from wrong
