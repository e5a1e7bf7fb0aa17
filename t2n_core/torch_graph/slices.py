"""How long a slice is. PyTorch says `Max(0, T - Min(2, T))` or a new symbol; here the bounds are those of the example.

`x[:, 2:]` of T steps has T - 2, and `x[:, :L]` has L, if that is so while capturing. At sizes where another bound would
be cut off the model is not the captured one, and is not checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy
import torch

from t2n_core.nnef.dims import Dim, as_dim, floor_div
from t2n_core.torch_graph.dynamic_axes import SymbolTable

SLICES = frozenset({"aten::slice.Tensor", "aten::slice_copy.Tensor"})


def decide_length(table: SymbolTable, arguments: Mapping[str, Any], length: Any) -> Dim | None:
    """Tells the table what the length of a slice is, where PyTorch leaves that open and the example decides it.

    Returns where the slice begins then, counted from the front.
    """
    if not isinstance(length, torch.SymInt) or not _is_open(length):
        return None
    source, dim, start, end, step = (_value(arguments[name]) for name in ("self", "dim", "start", "end", "step"))
    size = source.shape[dim]
    first, last = _bound(table, start, size, 0), _bound(table, end, size, size)
    if first is None or last is None or not isinstance(step, int):
        return None
    (begin, begin_here), (stop, stop_here) = first, last
    if begin_here >= stop_here:
        return None
    count: Dim = floor_div(as_dim(sympy.expand(stop - begin)) + step - 1, step)
    known = _number(length)
    if known is not None and known != -(-(stop_here - begin_here) // step):
        return None
    table.decide(length.node.expr, count)
    table.clipped.append(sympy.Min(1, 2 * count))  # never empty
    return begin


def _is_open(length: torch.SymInt) -> bool:
    expression = length.node.expr
    names = {type(e).__name__ for e in sympy.preorder_traversal(expression)}
    return bool(names & {"Max", "Min"}) or _number(length) is None


def _value(argument: Any) -> Any:
    return argument.meta.get("val") if isinstance(argument, torch.fx.Node) else argument


def _bound(table: SymbolTable, bound: Any, size: Any, missing: Any) -> tuple[Dim, int] | None:
    """A bound within [0, size] as an expression, and its number in the example; None if that tells nothing."""
    here, limit = _number(missing if bound is None else bound), _number(size)
    if here is None or limit is None:
        return None
    if bound is None:
        return table.dim(missing), here
    expression, whole = table.dim(bound), table.dim(size)
    taken = []
    if here < 0:
        taken.append(sympy.Min(-1, 2 * expression))  # counted from the end
        expression, here = as_dim(whole + expression), here + limit
    taken.append(sympy.Max(0, expression))
    if here < 0:
        expression, here = 0, 0
    elif here > limit:
        taken.append(sympy.Max(whole, expression))
        expression, here = whole, limit
    elif here == limit and not isinstance(bound, int) and sympy.expand(expression - whole) != 0:
        return None
    else:
        taken.append(sympy.Min(whole, expression))
    table.clipped += taken
    return expression, here


def _number(size: Any) -> int | None:
    """In the example."""
    if isinstance(size, torch.SymInt):
        return int(size.node.hint) if size.node.has_hint() else None
    return int(size)
