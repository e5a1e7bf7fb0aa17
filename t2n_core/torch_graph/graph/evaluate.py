"""Run a captured graph in PyTorch, operator by operator, for the reference values of all its tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

from t2n_core.torch_graph.graph.ir import TensorVariable, TorchModuleIRGraph, TorchOp


def evaluate_graph(
    graph: TorchModuleIRGraph, inputs: Sequence[torch.Tensor], sizes: Mapping[str, int]
) -> Callable[[TensorVariable], torch.Tensor | None]:
    """Return a function from a tensor of the graph to its value for these inputs.

    Its result is None for a tensor that cannot be computed here, or that depends on one: custom operators without a
    kernel, such as packing. `sizes` has the size of each symbol.
    """
    computed: dict[int, torch.Tensor] = {id(v): t for v, t in zip(graph.inputs, inputs, strict=True)}

    def value(variable: TensorVariable) -> torch.Tensor | None:
        return computed.get(id(variable)) if variable.data is None else variable.data

    for op in graph.op_nodes:
        tensors = [value(v) for v in op.inputs]
        present = [t for t in tensors if t is not None]
        if len(present) < len(tensors):
            continue
        try:
            with torch.no_grad():
                results = results_of(op, present, sizes)
        except (NotImplementedError, RuntimeError, TypeError):
            continue
        for variable, result in zip(op.outputs, results, strict=True):
            if variable is not None:
                computed[id(variable)] = result
    return value


def results_of(op: TorchOp, tensors: Sequence[torch.Tensor], sizes: Mapping[str, int]) -> list[torch.Tensor]:
    """Return the results of an operator for these values of its `inputs` and its own other arguments."""
    result = op.call_op(*[t.clone() for t in tensors], sizes=sizes)  # it may return a view, or write into its argument
    return [result] if isinstance(result, torch.Tensor) else list(result)
