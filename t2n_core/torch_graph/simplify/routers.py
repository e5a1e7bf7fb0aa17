"""Experts together with the router that picks them, for targets that have an operator for both."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import torch

from t2n_core.torch_graph.custom_ops import experts as _declared  # noqa: F401  the operators live there
from t2n_core.torch_graph.graph.ir import TensorVariable, TorchModuleIRGraph, TorchOp

EXPERTS: Final = "t2n_experts::experts"
ROUTED: Final = "t2n_experts::routed"
_SAME: Final = frozenset(
    f"aten::{name}" for name in "view reshape _unsafe_view contiguous alias clone detach to _to_copy".split()
)
"""Operators whose result has the elements of their operand in the same order, if it has its shape and dtype."""


def with_routers(graph: TorchModuleIRGraph) -> TorchModuleIRGraph:
    """Return a graph in which experts whose router is recognised are one operator with it.

    All others stay, and are decomposed to products of all rows; `operator_notes` says why.
    """
    makers = {id(o): op for op in graph.op_nodes for o in op.outputs if o is not None}
    done: list[TorchOp] = []
    notes: list[str] = []
    for op in graph.op_nodes:
        if op.kind != EXPERTS:
            done.append(op)
            continue
        router = _Router(makers, op).match()
        if isinstance(router, str):
            notes.append(router)
            done.append(op)
            continue
        done.append(_replace_router(op, router))
    return replace(graph, op_nodes=done, operator_notes=tuple(notes))


def _replace_router(op: TorchOp, router: dict[str, Any]) -> TorchOp:
    ref = torch.ops.t2n_experts.routed.default
    all_arguments = {**op.arguments, **router}
    arguments = {argument.name: all_arguments[argument.name] for argument in ref._schema.arguments}
    routed = TorchOp(ROUTED, "", (), op.outputs, op.scope, ref, arguments=arguments, origin=op.origin)
    for output in op.outputs:
        if output is not None:
            output.producer = routed
    return routed


def _is_weight(variable: TensorVariable) -> bool:
    return variable.data is not None and variable.dtype == torch.float32


class _Router:
    """Reads the operators in front of experts as a linear router."""

    def __init__(self, makers: dict[int, TorchOp], experts: TorchOp) -> None:
        self.makers, self.given = makers, experts.arguments

    def match(self) -> dict[str, Any] | str:
        """Return the arguments that describe the router, or why no engine has an operator for it."""
        if self.given["activation"] == "erf":
            return "its gelu is the one of `tanh`"
        layers = [v for name in ("up_proj", "up_bias", "down_proj", "down_bias") if (v := self.given[name]) is not None]
        if not all(map(_is_weight, layers)):
            return "the experts' weights are no constants of float32"
        if any(v.stored is not None and v.stored.format == "q4_0" for v in layers):
            return "the experts' weights are stored in blocks"
        picks = self._maker(self.given["top_k_index"], "aten::topk")
        if picks is None or picks.outputs[1] is not self._source(self.given["top_k_index"]):
            return "the experts are not picked by a `topk` alone"
        scores, k = picks.arguments["self"], picks.arguments["k"]
        if not picks.arguments["largest"] or picks.arguments["dim"] not in (-1, scores.rank - 1):
            return "the experts are not the largest of the last axis"
        gated = self._gate(scores, picks.outputs[0])
        if gated is None:
            return "the weights of the experts are no softmax, sigmoid or logits of the router"
        gate, logits = gated
        linear = self._maker(logits, "aten::linear")
        if linear is None or self._source(linear.arguments["input"]) is not self._source(self.given["hidden_states"]):
            return "the router is no linear layer of the experts' input"
        weight, bias = linear.arguments["weight"], linear.arguments["bias"]
        if not all(map(_is_weight, (weight, *([] if bias is None else [bias])))):
            return "the router's weights are no constants of float32"
        return {"router": weight, "router_bias": bias, "k": k, "gate": gate}

    def _gate(self, scores: TensorVariable, values: TensorVariable | None) -> tuple[str, TensorVariable] | None:
        """Return how logits become weights, and the logits."""
        weights, is_plain = self._source(self.given["top_k_weights"]), False
        if values is not None:
            is_plain = weights is values
        powers = self._maker(scores, "aten::softmax")
        if powers is not None:
            if not self._along_last(powers):
                return None
            logits = powers.arguments["self"]
            if is_plain:
                return "softmax_all", logits
            return ("softmax_topk", logits) if self._is_share(weights, values) else None
        sigmoid = self._maker(scores, "aten::sigmoid")
        if sigmoid is not None:
            return ("sigmoid", sigmoid.arguments["self"]) if is_plain else None
        if is_plain:
            return "raw", scores
        after = self._maker(weights, "aten::softmax", "aten::sigmoid")
        if after is None or after.arguments["self"] is not values:
            return None
        if after.kind.startswith("aten::sigmoid"):
            return "sigmoid", scores
        return ("softmax_topk", scores) if self._along_last(after) else None

    def _is_share(self, weights: TensorVariable, values: TensorVariable | None) -> bool:
        """Return whether weights are values divided by their sum."""
        quotient = self._maker(weights, "aten::div")
        if values is None or quotient is None or quotient.arguments["self"] is not values:
            return False
        if quotient.arguments.get("rounding_mode") is not None:
            return False
        total = self._maker(quotient.arguments["other"], "aten::sum")
        if total is None or total.kind != "aten::sum.dim_IntList":
            return False
        axes = list(total.arguments["dim"] or ())
        return total.arguments["self"] is values and total.arguments["keepdim"] and axes in ([-1], [values.rank - 1])

    @staticmethod
    def _along_last(op: TorchOp) -> bool:
        return op.arguments["dim"] in (-1, op.arguments["self"].rank - 1)

    def _source(self, value: Any) -> Any:
        """Return the tensor whose elements a view of the same shape shows."""
        while isinstance(value, TensorVariable):
            op = self.makers.get(id(value))
            if op is None or op.kind.split(".")[0] not in _SAME:
                break
            operand = op.arguments["self"]
            if (operand.shape, operand.dtype) != (value.shape, value.dtype):
                break
            value = operand
        return value

    def _maker(self, value: Any, *kinds: str) -> TorchOp | None:
        """Return the operator of one of these kinds that computes a value of float32 or an index, or None."""
        op = self.makers.get(id(self._source(value)))
        return op if op is not None and op.kind.split(".")[0] in kinds else None
