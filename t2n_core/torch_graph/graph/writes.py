"""A model's writes into its own parameters and buffers: writes that change nothing are left out of the graph."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch.export.graph_signature import OutputSpec

from t2n_core.torch_graph.compat.operators import operator
from t2n_core.torch_graph.compat.private import OpOverload

_COPY: Final = operator("aten::copy.default")


def is_never_read(program: torch.export.ExportedProgram, write: OutputSpec) -> bool:
    """Return whether a written value is overwritten in each call before anything reads it, so that it is no state."""
    holders = {
        name
        for targets in (program.graph_signature.inputs_to_buffers, program.graph_signature.inputs_to_parameters)
        for name, target in targets.items()
        if target == write.target
    }
    nodes = [node for node in program.graph.nodes if node.op == "placeholder" and node.name in holders]
    return all(_is_only_a_shape(user, node) for node in nodes for user in node.users)


def _is_only_a_shape(user: torch.fx.Node, node: torch.fx.Node) -> bool:
    """Return whether `user` overwrites all elements of `node`."""
    return user.target is _COPY and user.args[0] is node and node not in user.args[1:]


def changes_nothing(program: torch.export.ExportedProgram, write: OutputSpec) -> bool:
    """Return whether a write stores the elements that are already there, for any inputs: `weight.div_(1)`."""
    signature = program.graph_signature
    targets = {
        **signature.inputs_to_parameters,
        **signature.inputs_to_buffers,
        **signature.inputs_to_lifted_tensor_constants,
    }
    nodes = {node.name: node for node in program.graph.nodes}
    values: dict[str, Any] = {}

    def value(node: Any) -> Any:
        """Return the result of a node of constants. Raises LookupError for a node that reads an input."""
        if node.name not in values:
            if node.op == "placeholder":
                name = targets[node.name]
                stored: Any = program.state_dict[name] if name in program.state_dict else program.constants[name]
                values[node.name] = stored.detach().clone()
            elif node.op == "call_function" and isinstance(node.target, OpOverload):
                args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), value)
                values[node.name] = node.target(*args, **kwargs)
            else:
                raise LookupError(node.name)
        return values[node.name]

    name = str(write.target)
    try:
        with torch.no_grad():
            written = value(nodes[write.arg.name])
    except Exception:  # it depends on the inputs, or cannot run alone
        return False
    before: Any = program.state_dict.get(name)
    return isinstance(written, torch.Tensor) and isinstance(before, torch.Tensor) and torch.equal(written, before)
