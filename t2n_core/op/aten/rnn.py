"""Recurrent nets for tract: one scan per layer and direction, of the cells of `t2n_core.op.recurrent_cells`.

Shapes and formulas are as in torch.nn.LSTM, GRU, RNN and their cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
import torch

from t2n_core.errors import LowerError
from t2n_core.nnef.dat import ArrayWeight
from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import FLOAT16, FLOAT32, Value
from t2n_core.op.recurrent import (
    CellWeights,
    EmitNet,
    Net,
    Rule,
    emit_layers,
    register_recurrent,
    states_of,
    values_of,
)
from t2n_core.op.recurrent_cells import CELLS, CellEmitter
from t2n_core.torch_graph.graph.ir import TensorVariable, TorchOp


def write_net(emit_cell: CellEmitter, g: Emitter, input: Value, states: Sequence[Value], net: Net) -> list[Value]:
    """Write all layers and directions of a net, with any kind of cell: one scan of a fragment for each.

    Args:
        emit_cell: One of CELLS.
        g: The emitter.
        input: [T, B, I], or [B, T, I] with batch_first.
        states: Each [layers * directions, B, S].
        net: The weights and settings, as PyTorch's operators take them.

    Returns:
        The sequence of the last layer, [T, B, directions * S] or with batch_first [B, T, directions * S], and the final
        states, [layers * directions, B, S], as PyTorch does.
    """
    dtype = _inner_dtype(input)
    mask = None  # [T, B, 1]: 1 while a sequence runs, 0 where it has ended
    if net.active is not None and min(net.active) < max(net.active):
        running = np.asarray(net.active)[:, None, None] > np.arange(max(net.active))[None, :, None]
        mask = g.constant(running, dtype=dtype)
    if net.running is not None:
        mask = g.cast(net.running, dtype)

    def run(sequence: Value, weights: CellWeights, initial: list[Value], backwards: bool) -> tuple[Value, list[Value]]:
        return emit_cell(g, sequence, weights.cast(g, dtype)).scan(initial, mask, backwards)

    wide = [g.cast(state, dtype) for state in states]
    results = emit_layers(g, run, g.cast(input, dtype), wide, net, state_rank=3)
    return [g.cast(result, input.dtype) for result in results]


def _inner_dtype(input: Value) -> np.dtype[Any]:
    """Return float32 for float16, whose errors would grow from step to step; otherwise the input's dtype."""
    return FLOAT32 if input.dtype == FLOAT16 else input.dtype


def _once(
    emit_cell: CellEmitter, g: Emitter, input: Value, states: Sequence[Value], weights: CellWeights
) -> list[Value]:
    dtype = _inner_dtype(input)
    step = emit_cell(g, g.cast(input, dtype), weights.cast(g, dtype))
    return [g.cast(result, input.dtype) for result in step.once([g.cast(state, dtype) for state in states])]


NETS: dict[str, EmitNet] = {kind: partial(write_net, cell) for kind, cell in CELLS.items()}


def _register(kind: str) -> tuple[Rule, Rule]:
    return register_recurrent(kind, "tract", NETS[kind], partial(_once, CELLS[kind]))


lstm, lstm_cell = _register("lstm")
gru, gru_cell = _register("gru")
rnn_tanh, rnn_tanh_cell = _register("rnn_tanh")
rnn_relu, rnn_relu_cell = _register("rnn_relu")


# ------------------------------------------------------------------------ by the arguments of torch-to-nnef's document
Weight: TypeAlias = "torch.Tensor | Value | None"
Values: TypeAlias = "MutableMapping[str, Value]"
_GATES: Final = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def emit_lstm_cell_via_fragment(
    g: Emitter, name_to_tensor: Values, base: str, nnef_dtype: Any, batch_dim: int, hidden: int, input_ref: Value,
    h_prev_ref: Value, c_prev_ref: Value, w_ih: Weight, w_hh: Weight, b_ih: Weight, b_hh: Weight,
    h_new_tv: TensorVariable | None = None, c_new_tv: TensorVariable | None = None,
) -> list[str]:  # fmt: skip
    """Write a single step of an LSTM cell as one call of the fragment `lstm_cell`, and return the fragment's name.

    i, f, o = sigmoid, g = tanh of x @ w_ih.T + h @ w_hh.T + b; c' = f * c + i * g; h' = o * tanh(c').

    Args:
        g: The emitter.
        name_to_tensor: The values of tensors by name; receives the values of `h_new_tv` and `c_new_tv`.
        base: The prefix of the labels of weights that are passed as tensors.
        nnef_dtype, batch_dim, hidden: The data type of the input, B and H, which are checked.
        input_ref: The input x, [B, I].
        h_prev_ref, c_prev_ref: The states h and c, [B, H].
        w_ih, w_hh: [4H, I] and [4H, H], with the rows i, f, g, o.
        b_ih, b_hh: [4H], or None. They are added up.
        h_new_tv, c_new_tv: The tensors of the next states, [B, H]; None for a state that nobody reads.

    Raises LowerError for arguments that do not fit each other.
    """
    step = _DocumentedStep("lstm", g, name_to_tensor, base, nnef_dtype, batch_dim, hidden)
    return step.write(input_ref, [h_prev_ref, c_prev_ref], (w_ih, w_hh, b_ih, b_hh), [h_new_tv, c_new_tv])


def emit_gru_cell_via_fragment(
    g: Emitter, name_to_tensor: Values, base: str, nnef_dtype: Any, batch_dim: int, hidden: int, input_ref: Value,
    h_prev_ref: Value, w_ih: Weight, w_hh: Weight, b_ih: Weight, b_hh: Weight, h_new_tv: TensorVariable | None = None,
) -> list[str]:  # fmt: skip
    """Write a single step of a GRU cell as one call of the fragment `gru_cell`, and return the fragment's name.

    r, z = sigmoid of both products; n = tanh(x part + r * (h part + b_hn)); h' = n + z * (h - n). The arguments are
    as for `emit_lstm_cell_via_fragment`, with weights [3H, …] of the rows r, z, n. The biases stay separate.
    """
    step = _DocumentedStep("gru", g, name_to_tensor, base, nnef_dtype, batch_dim, hidden)
    return step.write(input_ref, [h_prev_ref], (w_ih, w_hh, b_ih, b_hh), [h_new_tv])


def emit_rnn_cell_via_fragment(
    g: Emitter, name_to_tensor: Values, base: str, nnef_dtype: Any, batch_dim: int, hidden: int, input_ref: Value,
    h_prev_ref: Value, w_ih: Weight, w_hh: Weight, b_ih: Weight, b_hh: Weight, h_new_tv: TensorVariable | None = None,
    nonlinearity: str = "tanh",
) -> list[str]:  # fmt: skip
    """Write a single step of a plain cell as one call of `rnn_tanh_cell` or `rnn_relu_cell`, and return that name.

    h' = nonlinearity(x @ w_ih.T + h @ w_hh.T + b). The arguments are as for `emit_lstm_cell_via_fragment`, with
    weights [H, …]. The biases are added up.
    """
    step = _DocumentedStep(f"rnn_{nonlinearity}", g, name_to_tensor, base, nnef_dtype, batch_dim, hidden)
    return step.write(input_ref, [h_prev_ref], (w_ih, w_hh, b_ih, b_hh), [h_new_tv])


def emit_rnn_via_fragment(
    g: Emitter, node: TorchOp, name_to_tensor: Values, module: Net, nnef_fragment_name: str,
    argument_names_order: Sequence[str] = (), tensor_params_fn: Callable[..., Sequence[CellWeights]] = Net.cells,
    inference_target: Any = None, **tensor_params_kwargs: Any,
) -> list[str]:  # fmt: skip
    """Write all layers and directions of a net, a scan of a fragment for each, and return the names of the fragments.

    Args:
        g: The emitter, which knows the release.
        node: The operator, with `input` and `hx`; its outputs receive the results in `name_to_tensor`.
        name_to_tensor: The values of tensors by name.
        module: The weights and settings, as `_LSTMAtenAdapter` and its like hold them.
        nnef_fragment_name: `lstm`, `gru`, `rnn_tanh` or `rnn_relu`.
        argument_names_order, inference_target: Not needed: arguments are passed by name, and `g` has the target.
        tensor_params_fn: Returns the weights of each layer and direction of `module`.

    Raises LowerError for another net.
    """
    if nnef_fragment_name not in NETS:
        raise LowerError(f"there is no recurrent net {nnef_fragment_name!r}; there are {', '.join(NETS)}")
    weights = tensor_params_fn(module, **tensor_params_kwargs)
    parts = [[cell.w_ih, cell.w_hh, cell.b_ih, cell.b_hh, cell.w_hr] for cell in weights]
    net = replace(module, params=[part for cell_parts in parts for part in cell_parts if part is not None])
    input, hx = (values_of(node.arguments[name], name_to_tensor, nnef_fragment_name) for name in ("input", "hx"))
    results = NETS[nnef_fragment_name](g, input, states_of(hx), net)
    _keep(name_to_tensor, node.outputs, results)
    return [name for name in g.graph.fragments if name.startswith(nnef_fragment_name)]


@dataclass(frozen=True, slots=True)
class _DocumentedStep:
    """A single step of a cell, by the arguments that all the documented functions have."""

    kind: str
    g: Emitter
    name_to_tensor: Values
    base: str
    dtype: Any
    batch: int
    hidden: int

    def write(
        self, x: Value, states: list[Value], weights: Sequence[Weight], outputs: Sequence[TensorVariable | None]
    ) -> list[str]:
        """Write it, keep the values of the outputs that are read, and return the names of its fragments."""
        if self.kind not in CELLS:
            raise LowerError(f"there is no cell {self.kind!r}; there are {', '.join(CELLS)}")
        w_ih, w_hh, b_ih, b_hh = (
            self._value(weight, name) for weight, name in zip(weights, ("w_ih", "w_hh", "b_ih", "b_hh"), strict=True)
        )
        if w_ih is None or w_hh is None:
            raise LowerError(f"a step of {self.kind} needs w_ih and w_hh")
        cell_weights = CellWeights(w_ih, w_hh, b_ih, b_hh)
        of_step = {"nnef_dtype": x.dtype, "batch_dim": x.shape[0], "hidden": cell_weights.hidden(_GATES[self.kind])}
        declared = {"nnef_dtype": np.dtype(self.dtype), "batch_dim": self.batch, "hidden": self.hidden}
        for name, value in declared.items():
            if of_step[name] != value:
                raise LowerError(f"{name} is {value}, and the tensors of this step of {self.kind} have {of_step[name]}")
        _keep(self.name_to_tensor, outputs, _once(CELLS[self.kind], self.g, x, states, cell_weights))
        return [name for name in self.g.graph.fragments if name.startswith(f"{self.kind}_cell")]

    def _value(self, weight: Weight, name: str) -> Value | None:
        if weight is None or isinstance(weight, Value):
            return weight
        return self.g.variable(f"{self.base}_{name}", ArrayWeight(weight.detach().cpu().numpy()))


def _keep(values: Values, outputs: Iterable[TensorVariable | None], results: Sequence[Value]) -> None:
    """Set the values of the outputs that are read."""
    values.update({output.name: value for output, value in zip(outputs, results, strict=True) if output is not None})


_LSTMAtenAdapter = _GRUAtenAdapter = _RNNAtenAdapter = Net
"""The flat weights of an operator as an object with attributes, for all variants."""
_lstm_tensor_params = _gru_tensor_params = _rnn_tensor_params = Net.cells
"""Return the weights of each layer and direction of such an object."""
