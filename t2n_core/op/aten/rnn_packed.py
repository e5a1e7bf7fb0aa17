"""Packed sequences: rows picked by constant indices, and nets whose states are kept where a sequence has ended.

Lengths are known at export, except for `…_masked`, whose rows stay padded. The layout is torch.nn.utils.rnn's:
step by step, the longest sequence first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from t2n_core.nnef.emitter import Emitter
from t2n_core.nnef.graph import Value
from t2n_core.op.aten import rnn, rnn_unrolled
from t2n_core.op.recurrent import EmitNet, Net, refuse_dropout, states_of
from t2n_core.op.registry import op
from t2n_core.torch_graph.custom_ops import recurrent  # noqa: F401  the operators `pack` and `pad` live there


def _rows(g: Emitter, value: Value, indices: Sequence[int]) -> Value:
    """Return the rows of [N, ...] at the indices; no operation is written if the order is unchanged."""
    if list(indices) == list(range(int(value.shape[0]))):
        return value
    return g.pick(value, g.constant(np.asarray(indices, dtype=np.int64)), axis=0)


@op("t2n_capture::pack")
def pack(g: Emitter, input: Value, lengths: list[int], batch_first: bool) -> Value:
    """Pack [T, B, ...] or [B, T, ...] to [sum of lengths, ...]."""
    first, second = input.shape[:2]
    if not isinstance(first, int) or not isinstance(second, int):
        raise g.fail("a packed sequence needs a fixed batch and time", hint="declare these axes static")
    rows = g.reshape_to(input, (first * second, *input.shape[2:]))
    places = [
        row * second + step if batch_first else step * second + row
        for step in range(max(lengths))
        for row in range(len(lengths))
        if step < lengths[row]
    ]
    return _rows(g, rows, places)


@op("t2n_capture::pad")
def pad(g: Emitter, data: Value, batch_sizes: list[int], batch_first: bool, padding_value: float, steps: int) -> Value:
    """Unpack [sum of lengths, ...] to [steps, B, ...] or [B, steps, ...], padded after the end of each sequence."""
    batch, count = batch_sizes[0], int(data.shape[0])
    starts = np.cumsum([0, *batch_sizes])

    def place(step: int, row: int) -> int:
        here = step < len(batch_sizes) and row < batch_sizes[step]
        return int(starts[step]) + row if here else count

    cells = [(s, r) for r in range(batch) for s in range(steps)] if batch_first else None
    cells = cells or [(s, r) for s in range(steps) for r in range(batch)]
    places = [place(s, r) for s, r in cells]
    if count in places:  # one more row, full of padding, for the empty positions
        filler = g.fill(padding_value, (1, *data.shape[1:]), data.dtype)
        data = g.concat([data, filler], axis=0)
    head = (batch, steps) if batch_first else (steps, batch)
    return g.reshape_to(_rows(g, data, places), (*head, *data.shape[1:]))


def _unpack_rows(g: Emitter, data: Value, batch_sizes: Sequence[int]) -> Value:
    """Return [N, I] as [T, B, I]. Rows after a sequence's end are arbitrary; the mask keeps them out of the states."""
    starts = np.cumsum([0, *batch_sizes])
    batch = batch_sizes[0]
    places = [int(starts[t]) + min(row, size - 1) for t, size in enumerate(batch_sizes) for row in range(batch)]
    return g.reshape_to(_rows(g, data, places), (len(batch_sizes), batch, *data.shape[1:]))


def _pack_rows(g: Emitter, sequence: Value, batch_sizes: Sequence[int]) -> Value:
    steps, batch = len(batch_sizes), batch_sizes[0]
    rows = g.reshape_to(sequence, (steps * batch, *sequence.shape[2:]))
    return _rows(g, rows, [t * batch + row for t, size in enumerate(batch_sizes) for row in range(size)])


def _register(kind: str, target: str, emit_net: EmitNet) -> None:
    def net(
        g: Emitter, data: Value, batch_sizes: list[int], hx: Any, params: list[Value], has_biases: bool,
        num_layers: int, dropout: float, train: bool, bidirectional: bool,
    ) -> list[Value]:  # fmt: skip
        refuse_dropout(g, dropout, train, num_layers)
        settings = Net(params, has_biases, num_layers, bidirectional, active=batch_sizes)
        sequence, *final = emit_net(g, _unpack_rows(g, data, batch_sizes), states_of(hx), settings)
        return [_pack_rows(g, sequence, batch_sizes), *final]

    def masked_net(
        g: Emitter, input: Value, running: Value, hx: Any, params: list[Value], has_biases: bool, num_layers: int,
        dropout: float, train: bool, bidirectional: bool,
    ) -> list[Value]:  # fmt: skip
        if target == "khronos":
            raise g.fail(
                "the lengths of a packed sequence are an input, and NNEF 1.0 cannot compare integers",
                hint="lengths from a Python list become a part of the archive",
            )
        refuse_dropout(g, dropout, train, num_layers)
        settings = Net(params, has_biases, num_layers, bidirectional, running=running)
        return emit_net(g, input, states_of(hx), settings)

    net.__name__, masked_net.__name__ = f"{kind}__packed__{target}", f"{kind}__masked__{target}"
    op(f"aten::{kind}.data", target=target)(net)
    op(f"t2n_capture::{kind}_masked", target=target)(masked_net)


for _target, _nets in (("tract", rnn.NETS), ("khronos", rnn_unrolled.NETS)):
    for _kind, _emit in _nets.items():
        _register(_kind, _target, _emit)
