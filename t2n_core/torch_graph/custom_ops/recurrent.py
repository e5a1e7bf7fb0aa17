"""Capture recurrent calls as one node each, for modules and functional calls alike.

Under fake tensors PyTorch would run its Python decomposition step by step: slow in proportion to the sequence, and the
size of the time axis becomes fixed. Custom operators with declared output shapes take their place; the graph shows the
aten names.
Shapes follow the documentation of torch.nn.LSTM, GRU and RNN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from t2n_core.torch_graph.compat.operators import operator
from t2n_core.torch_graph.compat.private import _pack_padded_sequence, _pad_packed_sequence
from t2n_core.torch_graph.custom_ops.definition import define, library

_TAIL = "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"
_CELL = "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> "


def _sequence_shapes(input: torch.Tensor, state: torch.Tensor, bidirectional: bool) -> torch.Tensor:
    return input.new_empty((*input.shape[:-1], state.shape[-1] * (2 if bidirectional else 1)))


def _lstm(
    input: torch.Tensor, hx: Sequence[torch.Tensor], params: Any, has_biases: bool, num_layers: int, dropout: float,
    train: bool, bidirectional: bool, batch_first: bool,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    return _sequence_shapes(input, hx[0], bidirectional), torch.empty_like(hx[0]), torch.empty_like(hx[1])


def _one_state(
    input: torch.Tensor, hx: torch.Tensor, params: Any, has_biases: bool, num_layers: int, dropout: float,
    train: bool, bidirectional: bool, batch_first: bool,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    return _sequence_shapes(input, hx, bidirectional), torch.empty_like(hx)


def _lstm_packed(
    data: torch.Tensor, batch_sizes: Sequence[int], hx: Sequence[torch.Tensor], params: Any, has_biases: bool,
    num_layers: int, dropout: float, train: bool, bidirectional: bool,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    return _sequence_shapes(data, hx[0], bidirectional), torch.empty_like(hx[0]), torch.empty_like(hx[1])


def _one_state_packed(
    data: torch.Tensor, batch_sizes: Sequence[int], hx: torch.Tensor, params: Any, has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    return _sequence_shapes(data, hx, bidirectional), torch.empty_like(hx)


def _masked_net(kind: str, shapes: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the functions for the shapes and the values of a net [T, B, I] with a mask `running` [T, B, 1]."""

    def shapes_of(input: torch.Tensor, running: torch.Tensor, hx: Any, *settings: Any) -> Any:
        return shapes(input, hx, *settings, False)

    def values_of(input: torch.Tensor, running: torch.Tensor, hx: Any, *settings: Any) -> Any:
        lengths, order = running.sum(0).reshape(-1).sort(descending=True)
        data, sizes = _pack_padded_sequence(input[:, order], lengths, False)
        states = [s[:, order] for s in hx] if isinstance(hx, list | tuple) else hx[:, order]
        rows, *final = operator(f"aten::{kind}.data")(data, sizes, states, *settings)
        padded, _ = _pad_packed_sequence(rows, sizes, False, 0.0, len(input))
        return tuple(result[:, order.argsort()] for result in (padded, *final))

    return shapes_of, values_of


def _lstm_cell(
    input: torch.Tensor, hx: Sequence[torch.Tensor], w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None
) -> tuple[torch.Tensor, ...]:
    return torch.empty_like(hx[0]), torch.empty_like(hx[1])


def _cell(
    input: torch.Tensor, hx: torch.Tensor, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None
) -> torch.Tensor:
    return torch.empty_like(hx)


_define = partial(define, library)

_define(f"lstm(Tensor input, Tensor[] hx, {_TAIL}, bool batch_first) -> (Tensor, Tensor, Tensor)", _lstm)
_define(f"lstm_data(Tensor data, int[] batch_sizes, Tensor[] hx, {_TAIL}) -> (Tensor, Tensor, Tensor)", _lstm_packed)
_define(
    f"lstm_masked(Tensor input, Tensor running, Tensor[] hx, {_TAIL}) -> (Tensor, Tensor, Tensor)",
    *_masked_net("lstm", _lstm),
)
_define(f"lstm_cell(Tensor input, Tensor[] hx, {_CELL}(Tensor, Tensor)", _lstm_cell)
for _name in ("gru", "rnn_tanh", "rnn_relu"):
    _define(f"{_name}(Tensor input, Tensor hx, {_TAIL}, bool batch_first) -> (Tensor, Tensor)", _one_state)
    _define(f"{_name}_data(Tensor data, int[] batch_sizes, Tensor hx, {_TAIL}) -> (Tensor, Tensor)", _one_state_packed)
    _define(
        f"{_name}_masked(Tensor input, Tensor running, Tensor hx, {_TAIL}) -> (Tensor, Tensor)",
        *_masked_net(_name, _one_state),
    )
    _define(f"{_name}_cell(Tensor input, Tensor hx, {_CELL}Tensor", _cell)


def _pack(input: torch.Tensor, lengths: Sequence[int], batch_first: bool) -> torch.Tensor:
    return input.new_empty((sum(lengths), *input.shape[2:]))


def _pad(
    data: torch.Tensor, batch_sizes: Sequence[int], batch_first: bool, padding_value: float, steps: int
) -> torch.Tensor:
    head = (batch_sizes[0], steps) if batch_first else (steps, batch_sizes[0])
    return data.new_empty((*head, *data.shape[1:]))


_define("pack(Tensor input, int[] lengths, bool batch_first) -> Tensor", _pack)
_define("pad(Tensor data, int[] batch_sizes, bool batch_first, float padding_value, int steps) -> Tensor", _pad)

NAMES = frozenset(f"{kind}{end}" for kind in ("lstm", "gru", "rnn_tanh", "rnn_relu") for end in ("", "_cell"))
