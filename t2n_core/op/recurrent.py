"""Parts shared by the recurrent rules of both targets: arguments, layers, directions, weights and states."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from t2n_core.errors import LowerError
from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import Value
from t2n_core.op.registry import op
from t2n_core.torch_graph.graph.ir import TensorVariable, TorchOp


@dataclass(frozen=True, slots=True)
class CellWeights:
    """Weights of one layer and direction: w_ih [gates * H, I], w_hh [gates * H, S], biases [gates * H], w_hr [P, H]."""

    w_ih: Value
    w_hh: Value
    b_ih: Value | None = None
    b_hh: Value | None = None
    w_hr: Value | None = None

    def hidden(self, gates: int) -> int:
        return int(self.w_ih.shape[0]) // gates

    def cast(self, g: Emitter, dtype: np.dtype[Any]) -> CellWeights:
        rest = [None if v is None else g.cast(v, dtype) for v in (self.b_ih, self.b_hh, self.w_hr)]
        return CellWeights(g.cast(self.w_ih, dtype), g.cast(self.w_hh, dtype), *rest)


@dataclass(frozen=True, slots=True)
class Net:
    """The settings of a net, as PyTorch's operators take them."""

    params: Sequence[Value]
    has_biases: bool
    num_layers: int
    bidirectional: bool
    batch_first: bool = False
    active: Sequence[int] | None = None
    """How many sequences have not ended, per step; None for all in all steps."""
    running: Value | None = None
    """Mask [T, B, 1], true where a sequence has not ended, for lengths that are known at run time only."""

    def cells(self) -> list[CellWeights]:
        """Return the weights of each layer and direction."""
        return split_params(self.params, self.num_layers * (2 if self.bidirectional else 1), self.has_biases)


def split_params(params: Sequence[Value], count: int, has_biases: bool) -> list[CellWeights]:
    """Split PyTorch's flat weights: per layer and direction w_ih, w_hh, then both biases, then w_hr if there is one."""
    size = len(params) // count
    result = []
    for index in range(count):
        cell_params = list(params[index * size : (index + 1) * size])
        w_ih, w_hh = cell_params[:2]
        b_ih, b_hh = cell_params[2:4] if has_biases else (None, None)
        rest = cell_params[4:] if has_biases else cell_params[2:]
        result.append(CellWeights(w_ih, w_hh, b_ih, b_hh, rest[0] if rest else None))
    return result


def refuse_dropout(g: Emitter, dropout: float, train: bool, num_layers: int) -> None:
    """Raise LowerError if dropout between layers would be active."""
    if train and dropout > 0 and num_layers > 1:
        raise g.fail("dropout between the layers is active: the module is in training mode", hint="call model.eval()")


def stack_states(g: Emitter, states: Sequence[Value]) -> Value:
    """Join the states of each layer and direction, [B, S] or [1, B, S], to [layers * directions, B, S]."""
    rows = [g.lift(s, 3) for s in states]
    return rows[0] if len(rows) == 1 else g.concat(rows, axis=0)


RunLayer = Callable[[Value, CellWeights, list[Value], bool], tuple[Value, list[Value]]]
"""(sequence [T, B, I], weights, initial states, backwards) -> (sequence [T, B, S], final states)."""


def emit_layers(
    g: Emitter, run: RunLayer, input: Value, states: Sequence[Value], net: Net, state_rank: int = 2
) -> list[Value]:
    """Return the last layer's sequence and the final states in PyTorch's order: layer by layer, forwards, backwards.

    `run` takes and returns states of `state_rank`: [B, S] or [1, B, S].
    """
    ways = 2 if net.bidirectional else 1
    weights = net.cells()
    sequence = g.permute(input, [1, 0, 2]) if net.batch_first else input
    last: list[list[Value]] = []
    for layer in range(net.num_layers):
        both = []
        for way in range(ways):
            index = layer * ways + way
            initial = [g.take(s, 0, index, index + 1) for s in states]
            if state_rank == 2:
                initial = [g.squeeze(s, axes=[0]) for s in initial]
            output_sequence, final = run(sequence, weights[index], initial, way == 1)
            both.append(output_sequence)
            last.append(final)
        sequence = both[0] if ways == 1 else g.concat(both, axis=2)
    out = g.permute(sequence, [1, 0, 2]) if net.batch_first else sequence
    return [out, *(stack_states(g, [final[i] for final in last]) for i in range(len(states)))]


EmitNet = Callable[[Emitter, Value, Sequence[Value], Net], list[Value]]
"""(input, states [layers * directions, B, S], net) -> the last layer's sequence and the final states."""
EmitCell = Callable[[Emitter, Value, Sequence[Value], CellWeights], list[Value]]
"""(x [B, I], states [B, S], weights) -> new states."""


Rule = Callable[..., list[Value]]
"""(emitter, arguments of the torch schema) -> results."""


def register_recurrent(kind: str, target: str, emit_net: EmitNet, emit_cell: EmitCell) -> tuple[Rule, Rule]:
    """Register the rules of a net and of its cell for one target, and return them."""

    def net(
        g: Emitter, input: Value, hx: Any, params: list[Value], has_biases: bool, num_layers: int, dropout: float,
        train: bool, bidirectional: bool, batch_first: bool,
    ) -> list[Value]:  # fmt: skip
        refuse_dropout(g, dropout, train, num_layers)
        return emit_net(g, input, states_of(hx), Net(params, has_biases, num_layers, bidirectional, batch_first))

    def cell(
        g: Emitter,
        input: Value,
        hx: Any,
        w_ih: Value,
        w_hh: Value,
        b_ih: Value | None = None,
        b_hh: Value | None = None,
    ) -> list[Value]:
        return emit_cell(g, input, states_of(hx), CellWeights(w_ih, w_hh, b_ih, b_hh))

    net.__name__, cell.__name__ = f"{kind}__{target}", f"{kind}_cell__{target}"
    states = "states (h, c)" if kind == "lstm" else "state"
    net.__doc__ = (
        f"Write aten::{kind}.input: `input` [T, B, I], or [B, T, I] with batch_first; `hx` the {states}, "
        "[layers * directions, B, S]; `params` the weights of each layer and direction in PyTorch's order."
    )
    cell.__doc__ = f"Write aten::{kind}_cell, a single step: `input` [B, I], `hx` the {states}, [B, H]."
    rules = by_node(net), by_node(cell)
    op(f"aten::{kind}.input", target=target)(rules[0])
    op(f"aten::{kind}_cell", target=target)(rules[1])
    return rules


def by_node(rule: Rule) -> Rule:
    """Return a rule that may also be called as `rule(g, node, name_to_tensor)`, with the values of the node's tensors.

    Raises LowerError for arguments that are neither these nor the rule's.
    """

    @functools.wraps(rule)
    def call(g: Emitter, *args: Any, **kwargs: Any) -> list[Value]:
        node = args[0] if args else kwargs.get("node")
        if isinstance(node, TorchOp):
            values = args[1] if len(args) > 1 else kwargs.get("name_to_tensor")
            if not isinstance(values, Mapping):
                raise LowerError(
                    f"{rule.__name__}(g, node, name_to_tensor) has no values of the tensors of {node.kind}"
                )
            args = ()
            kwargs = {name: values_of(argument, values, rule.__name__) for name, argument in node.arguments.items()}
        try:
            inspect.signature(rule).bind(g, *args, **kwargs)
        except TypeError as wrong:
            hint = "call it with g and the arguments of the operator's schema, or with g, node and name_to_tensor"
            raise LowerError(f"{rule.__name__}: {wrong}", hint=hint) from None
        return rule(g, *args, **kwargs)

    return call


def values_of(argument: Any, values: Mapping[str, Value], name: str) -> Any:
    """Return an argument of a node with the values of its tensors. Raises LowerError for one without a value."""
    if isinstance(argument, TensorVariable):
        if argument.name not in values:
            raise LowerError(f"name_to_tensor has no value of {argument.name}, an argument of {name}")
        return values[argument.name]
    return [values_of(item, values, name) for item in argument] if isinstance(argument, list | tuple) else argument


def states_of(hx: Any) -> list[Value]:
    """Return PyTorch's argument as a list: one state, or the two of an LSTM."""
    return hx if isinstance(hx, list) else [hx]
