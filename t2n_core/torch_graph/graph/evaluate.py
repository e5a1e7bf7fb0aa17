"""Run a captured graph in PyTorch, operator by operator, for the reference values of all its tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

from t2n_core.nnef.sizes.dims import evaluate
from t2n_core.torch_graph.capture.module_calls import MODULE_CALL
from t2n_core.torch_graph.graph.ir import TensorVariable, TorchModuleIRGraph, TorchOp, replace_sizes, replace_tensors


def evaluate_graph(
    graph: TorchModuleIRGraph, inputs: Sequence[torch.Tensor], sizes: Mapping[str, int]
) -> Callable[[TensorVariable], torch.Tensor | None]:
    """Return a function from a tensor of the graph to its value for these inputs.

    Its result is None for a tensor that cannot be computed here, or that depends on one: custom operators without a
    kernel, such as packing. `sizes` has the size of each symbol.
    """
    known: dict[int, torch.Tensor] = {id(v): t for v, t in zip(graph.inputs, inputs, strict=True)}

    def value(variable: TensorVariable) -> torch.Tensor | None:
        return known.get(id(variable)) if variable.data is None else variable.data

    for op in graph.op_nodes:
        tensors = [value(v) for v in op.inputs]
        given = [t for t in tensors if t is not None]
        if len(given) < len(tensors):
            continue
        try:
            with torch.no_grad():
                results = results_of(op, given, sizes)
        except (NotImplementedError, RuntimeError, TypeError):
            continue
        for variable, result in zip(op.outputs, results, strict=True):
            if variable is not None:
                known[id(variable)] = result
    return value


def results_of(op: TorchOp, tensors: Sequence[torch.Tensor], sizes: Mapping[str, int]) -> list[torch.Tensor]:
    """Return the results of an operator for these values of its `inputs` and its own other arguments."""
    if op.kind == MODULE_CALL:
        return op.arguments["key"].compute(tensors[: len(op.arguments["inputs"])])[0]  # type: ignore[no-any-return]
    supply = iter([t.clone() for t in tensors])  # an operator may return a view of its argument, or write into it
    arguments = {
        name: replace_sizes(replace_tensors(given, lambda _: next(supply)), lambda size: evaluate(size, sizes))
        for name, given in op.arguments.items()
    }
    schema = op.op_ref._schema.arguments
    found = op.op_ref(
        *[arguments[a.name] for a in schema if not a.kwarg_only],
        **{a.name: arguments[a.name] for a in schema if a.kwarg_only},
    )
    return [found] if isinstance(found, torch.Tensor) else list(found)


__all__ = ["evaluate_graph", "results_of"]
