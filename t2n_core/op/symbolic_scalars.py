"""Floats that a model computes from dynamic sizes, such as `1 / math.sqrt(T)`, as values of the graph."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import sympy
import torch

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import FLOAT32, FLOAT64, Value
from t2n_core.torch_graph.constraints.dynamic_axes import SymbolTable
from t2n_core.torch_graph.constraints.rounded_sizes import KINDS

_INTEGERS = frozenset({"FloorDiv", "CleanDiv", "Mod", "PythonMod", "Abs", *KINDS})
_JOINED: dict[str, Callable[[Emitter, Value, Value], Value]] = {
    "Add": lambda g, a, b: g.add(a, b),
    "Mul": lambda g, a, b: g.mul(a, b),
    "Max": lambda g, a, b: g.max(a, b),
    "Min": lambda g, a, b: g.min(a, b),
    "IntTrueDiv": lambda g, a, b: g.quotient(a, b),
    "FloatTrueDiv": lambda g, a, b: g.quotient(a, b),
    "Pow": lambda g, a, b: g.pow(a, b),
    "FloatPow": lambda g, a, b: g.pow(a, b),
    "PowByNatural": lambda g, a, b: g.pow(a, b),
}
_OF_ONE: dict[str, Callable[[Emitter, Value], Value]] = {
    "ToFloat": lambda g, x: x,
    "Identity": lambda g, x: x,
    "OpaqueUnaryFn_sqrt": lambda g, x: g.sqrt(x),
    "OpaqueUnaryFn_exp": lambda g, x: g.exp(x),
    "OpaqueUnaryFn_log": lambda g, x: g.log(x),
}


def float_of_sizes(g: Emitter, number: torch.SymFloat, table: SymbolTable) -> Value:
    """Return `number` as a tensor of rank 0: float64 where the current operator returns that, otherwise float32.

    Raises LowerError for a number that depends on data, or on an unsupported function.
    """
    expression = number.node.expr
    if not table.knows(expression):
        raise g.fail(
            f"a number of this model depends on its data ({expression})",
            hint="keep it a tensor: x * x.max() in place of x * x.max().item()",
        )
    outputs = g.node.outputs
    dtype = FLOAT64 if outputs and outputs[0].dtype == FLOAT64 else FLOAT32
    return g.cast(_write(g, expression, table, g.widest), dtype)


def _write(g: Emitter, e: Any, table: SymbolTable, dtype: np.dtype[Any]) -> Value:
    if e.is_Number:
        return g.constant(np.asarray(float(e), dtype))
    kind = type(e).__name__
    if e.is_Symbol or kind in _INTEGERS:
        return g.size(table.expression(e), dtype)
    parts = [_write(g, a, table, dtype) for a in e.args]
    if kind in _OF_ONE:
        return _OF_ONE[kind](g, parts[0])
    if kind in _JOINED:
        return functools.reduce(lambda a, b: _JOINED[kind](g, a, b), parts)
    raise g.fail(f"{sympy.sstr(e)}, computed from dynamic sizes, is not supported")
