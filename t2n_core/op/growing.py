"""The operators whose error, time or memory grows with the size of an axis, which short examples do not show.

A check tries a long size of each dynamic axis along which one of them computes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from t2n_core.nnef.sizes.dims import symbols_of
from t2n_core.nnef.sizes.ranges import SizeRange
from t2n_core.torch_graph.graph.ir import TensorVariable, TorchModuleIRGraph, TorchOp
from t2n_core.torch_graph.precision.growth import growing_units, unbounded
from t2n_core.torch_graph.precision.units import name_of

RUNNING: Final = frozenset("cummax cummin cumprod cumsum logcumsumexp".split())
"""Operators whose element i combines those before it."""
REDUCING: Final = frozenset(
    "frobenius_norm linalg_vector_norm log_softmax logsumexp mean norm prod softmax std std_mean sum var "
    "var_mean".split()
)
"""Operators that combine all elements along the axes of their argument `dim`, or of all axes."""
ORDERING: Final = frozenset("argsort kthvalue median mode msort nanmedian nanquantile quantile sort topk".split())
"""Operators that compare all pairs of elements along a dynamic axis: their memory grows with its square."""
NORMALISING: Final = frozenset({"group_norm", "instance_norm"})
"""Operators that combine all elements along the axes after the channels."""
ATTENDING: Final = frozenset({"scaled_dot_product_attention"})
"""Operators with a softmax over the last axis but one of their second input."""
LOOPING: Final = frozenset("gated_delta_rule gru lstm rnn_relu rnn_tanh".split())
"""Operators that PyTorch computes step by step, at an extra cost for each step."""


def growing_operators(graph: TorchModuleIRGraph, sizes: SizeRange, symbols: Mapping[str, int]) -> dict[str, set[str]]:
    """Return the names of the operators in this table along each symbol, by symbol; `symbols` are the example's sizes.

    `positions` stands for all that computes with values that grow with the symbol.
    """
    operators: dict[str, set[str]] = {}
    for op in graph.op_nodes:
        for name in symbols_of(_combined(op)) & symbols.keys():
            operators.setdefault(name, set()).add(name_of(op.kind))
    for name in unbounded(sizes, symbols):
        if growing_units(graph, {name}):
            operators.setdefault(name, set()).add("positions")
    return operators


def _combined(op: TorchOp) -> Iterator[Any]:
    """Yield the extents of the axes along which an operator of the table combines elements."""
    name = name_of(op.kind)
    if name in ATTENDING:
        yield from op.inputs[1].shape[-2:-1]
        return
    operand = op.arguments.get("self", op.arguments.get("input"))
    if not isinstance(operand, TensorVariable) or not operand.shape:
        return
    if name in NORMALISING:
        yield from operand.shape[2:]
    elif name in RUNNING or name in REDUCING or name in ORDERING:
        dims = 0 if name == "msort" else op.arguments.get("dim")
        dims = range(operand.rank) if dims is None or dims == [] else [dims] if isinstance(dims, int) else dims
        yield from (operand.shape[dim] for dim in dims)
