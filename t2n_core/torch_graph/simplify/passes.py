"""Simplify a captured graph before lowering: fold constants, decompose operators without rules, remove dead code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from t2n_core.errors import LowerError
from t2n_core.nnef.sizes.dims import product
from t2n_core.torch_graph.compat.private import OpOverload
from t2n_core.torch_graph.graph.ir import TensorVariable, TorchModuleIRGraph, TorchOp, is_constant, replace_tensors
from t2n_core.torch_graph.simplify.complex_pairs.expansion import ComplexPairs
from t2n_core.torch_graph.simplify.decompose import decompose

FOLD_LIMIT = 1 << 20
"""Elements. A larger constant is folded only if it is not larger than its inputs."""


Body = Callable[..., Any]
"""Computes an operator from the arguments of its torch schema."""


def simplify(
    graph: TorchModuleIRGraph,
    has_rule: Callable[[TorchOp], bool],
    other_body: Callable[[TorchOp], tuple[object, Body] | None] = lambda _: None,
) -> TorchModuleIRGraph:
    """Return a new graph in which every operator has a rule or cannot be decomposed further, with constants folded.

    `other_body` returns a user's replacement for an operator and a key; the operators of a body are not passed to the
    same body again. The original graph stays as it is, so that one capture serves several targets.
    """
    swaps: dict[int, TensorVariable] = {}
    done: list[TorchOp] = []
    folded: list[TensorVariable] = []
    nothing: frozenset[object] = frozenset()
    pairs = ComplexPairs(graph.table)
    pending = [(op, nothing) for op in reversed(graph.used_ops())]
    while pending:
        op, done_with = pending.pop()
        op = replace(op, arguments={k: apply_swaps(v, swaps) for k, v in op.arguments.items()})
        other = other_body(op)
        if other is not None and other[0] not in done_with:
            done_with |= {other[0]}
            expansion = decompose(op, graph.table, other[1])
        elif not _dequantises_a_weight(op) and _fold(op):
            folded += [o for o in op.outputs if o is not None]
            continue
        elif pairs.concerns(op):
            expansion = pairs.expand(op)
        else:
            expansion = None if has_rule(op) else decompose(op, graph.table)
        if expansion is None:
            done.append(op)
            continue
        steps, results = expansion
        for old, new in zip(op.outputs, results, strict=True):
            if old is not None and new is not None:
                swaps[id(old)] = new
        pending.extend((step, done_with) for step in reversed(steps))
    outputs = [_final(v, swaps) for v in graph.outputs]
    if any(v.dtype.is_complex for v in outputs):
        raise LowerError("an output is complex, and NNEF has real numbers only", hint="return torch.view_as_real(x)")
    simplified = replace(graph, outputs=outputs, op_nodes=done, weights=[*graph.weights, *folded])
    simplified.op_nodes = simplified.used_ops()
    return simplified


def apply_swaps(argument: Any, swaps: dict[int, TensorVariable]) -> Any:
    """Return `argument` with replaced tensors followed to their last replacement."""
    if isinstance(argument, TensorVariable):
        return _final(argument, swaps)
    if isinstance(argument, list | tuple):
        return type(argument)(apply_swaps(a, swaps) for a in argument)
    return argument


def _final(value: TensorVariable, swaps: dict[int, TensorVariable]) -> TensorVariable:
    while id(value) in swaps:
        value = swaps[id(value)]
    return value


def _dequantises_a_weight(op: TorchOp) -> bool:
    """Return whether an operator dequantises an 8-bit weight, which the archive should hold as it is."""
    if op.kind.partition(".")[0] not in _DEQUANTISES:
        return False
    weight = op.inputs[0]
    return bool(weight.label) and weight.data is not None and weight.data.dtype in (torch.int8, torch.uint8)


_DEQUANTISES = frozenset(
    {
        "t2n_numbers::dequantised",
        "t2n_numbers::dequantised_along",
        "quantized_decomposed::dequantize_per_tensor",
        "quantized_decomposed::dequantize_per_channel",
    }
)


def _fold(op: TorchOp) -> bool:
    """Compute an operator on constants with PyTorch itself. Return True if its results now hold their data."""
    if all(o is None or o.data is not None for o in op.outputs):
        return True  # by an earlier export of the same capture
    if not is_constant(op) or torch.Tag.nondeterministic_seeded in op.op_ref.tags:
        return False
    grown = sum(int(product(o.shape)) for o in op.outputs if o is not None)
    if grown > max(FOLD_LIMIT, *(int(product(v.shape)) for v in op.inputs), 0):
        return False
    with torch.no_grad():
        result = _call(op.op_ref, {k: replace_tensors(v, lambda t: t.data) for k, v in op.arguments.items()})
    results = [result] if isinstance(result, torch.Tensor) else list(result)
    for variable, data in zip(op.outputs, results, strict=True):
        if variable is not None:
            variable.data, variable.producer = data.detach(), None
            variable.moved = op if _moves_a_weight(op) else None
    return True


_MOVERS = frozenset(
    "alias chunk contiguous detach flatten movedim narrow permute reshape select slice split split_with_sizes squeeze "
    "swapaxes t transpose unbind unflatten unsqueeze view _unsafe_view".split()
)


def _moves_a_weight(op: TorchOp) -> bool:
    """Return whether an operator returns elements of a weight in another shape or order.

    The archive then holds the weight itself, and the engine moves its elements once.
    """
    if op.kind.rpartition("::")[2].partition(".")[0] not in _MOVERS or len(op.inputs) != 1:
        return False
    (source,) = op.inputs
    return source.dtype.is_floating_point and bool(source.label or source.moved is not None)


def _call(target: OpOverload, arguments: dict[str, Any]) -> Any:
    """Call an operator with arguments by schema name; positional ones by position, since the binding has no `self=`."""
    schema = target._schema.arguments
    positional = [arguments[a.name] for a in schema if not a.kwarg_only]
    keywords = {a.name: arguments[a.name] for a in schema if a.kwarg_only}
    return target(*positional, **keywords)
