"""Recurrent nets for tract: one scan per layer and direction, the input products hoisted out of it.

Shapes and formulas are those of torch.nn.LSTM, GRU, RNN and their cells. Bodies are fragments: `op/fragment/*.nnef`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from t2n_core.nnef.emitter import Emitter, Expected
from t2n_core.nnef.graph import Value
from t2n_core.op.fragment import add_fragment
from t2n_core.op.recurrent import CellWeights, emit_layers, refuse_dropout
from t2n_core.op.registry import op


@dataclass(frozen=True, slots=True)
class Step:
    """What one cell needs: as the body of a scan, or once."""

    body: str
    """Name of the fragment for the scan."""
    product: Value
    """x @ w_ih.T with all biases that do not depend on the state: [T, B, gates * H] or [B, gates * H]."""
    full: dict[str, Value]
    """What every step sees whole: recurrent weights."""
    once: Callable[[Sequence[Value]], list[Value]] = field(repr=False)
    """Writes a single step on `product` of rank 2, from states to states."""


CellEmitter = Callable[[Emitter, Value, CellWeights], Step]


def emit_lstm_cell_via_fragment(g: Emitter, x: Value, weights: CellWeights) -> Step:
    """i, f, o = sigmoid, g = tanh of x @ w_ih.T + h @ w_hh.T + b; c' = f * c + i * g; h' = o * tanh(c')."""
    hidden = weights.hidden(4)
    cell, gates = add_fragment(g, "lstm", x.dtype, hidden)
    w = weights.reordered(g, ("i", "f", "g", "o"), gates)
    product = _product(g, x, w.w_ih, [w.b_ih, w.b_hh])
    full = {"w_hh": w.w_hh, **({"w_hr": w.w_hr} if w.w_hr is not None else {})}
    body, _ = add_fragment(g, "lstm_step" if w.w_hr is None else "lstm_projected_step", x.dtype, hidden)

    def once(states: Sequence[Value]) -> list[Value]:
        h, c = states
        total = g.add(product, g.matmul(h, w.w_hh, transposeB=True))
        new = Expected(c.shape, c.dtype)
        return list(g.write(cell, {"g": total, "c": c}, [new, new]))

    return Step(body, product, full, once)


def emit_gru_cell_via_fragment(g: Emitter, x: Value, weights: CellWeights) -> Step:
    """r, z = sigmoid of both products; n = tanh(x part + r * (h part + b_hn)); h' = n + z * (h - n)."""
    hidden = weights.hidden(3)
    cell, gates = add_fragment(g, "gru", x.dtype, hidden)
    w = weights.reordered(g, ("r", "z", "n"), gates)
    product = _product(g, x, w.w_ih, [w.b_ih])
    bias = g.fill(0.0, (1, 3 * hidden), x.dtype) if w.b_hh is None else g.lift(w.b_hh, 2)
    body, _ = add_fragment(g, "gru_step", x.dtype, hidden)

    def once(states: Sequence[Value]) -> list[Value]:
        (h,) = states
        recurrent = g.add(g.matmul(h, w.w_hh, transposeB=True), bias)
        return list(g.write(cell, {"gx": product, "gh": recurrent, "h": h}, [Expected(h.shape, h.dtype)]))

    return Step(body, product, {"w_hh": w.w_hh, "b_hh": bias}, once)


def emit_rnn_cell_via_fragment(activation: str) -> CellEmitter:
    """h' = activation(x @ w_ih.T + h @ w_hh.T + b)."""

    def emit(g: Emitter, x: Value, weights: CellWeights) -> Step:
        cell, _ = add_fragment(g, f"rnn_{activation}", x.dtype)
        product = _product(g, x, weights.w_ih, [weights.b_ih, weights.b_hh])
        body, _ = add_fragment(g, f"rnn_{activation}_step", x.dtype)

        def once(states: Sequence[Value]) -> list[Value]:
            (h,) = states
            total = g.add(product, g.matmul(h, weights.w_hh, transposeB=True))
            return list(g.write(cell, {"g": total}, [Expected(h.shape, h.dtype)]))

        return Step(body, product, {"w_hh": weights.w_hh}, once)

    return emit


def _product(g: Emitter, x: Value, w_ih: Value, biases: Sequence[Value | None]) -> Value:
    known = [b for b in biases if b is not None]
    out = g.matmul(x, g.lift(w_ih, x.rank), transposeB=True)
    if not known:
        return out
    bias = known[0] if len(known) == 1 else g.add(known[0], known[1])
    return g.add(out, bias)


def emit_rnn_via_fragment(
    g: Emitter,
    emit_cell: CellEmitter,
    input: Value,
    states: Sequence[Value],
    params: Sequence[Value],
    has_biases: bool,
    num_layers: int,
    bidirectional: bool,
    batch_first: bool,
    mask: Value | None = None,
) -> list[Value]:
    """Layers, directions, batch_first and states, the same for every kind of cell.

    `input` is [T, B, I], or [B, T, I] with batch_first; each of `states` is [layers * directions, B, S]; `mask`, for
    sequences of different lengths, is [T, B, 1]: 1 while a sequence runs, 0 where it has ended. Returns the sequence of
    the last layer and the final states, as PyTorch does.
    """

    def run(sequence: Value, weights: CellWeights, initial: list[Value], backwards: bool) -> tuple[Value, list[Value]]:
        known = None if mask is None else g.cast(mask, sequence.dtype)
        return _scan(g, emit_cell(g, sequence, weights), initial, known, backwards=backwards)

    return emit_layers(g, run, input, states, params, has_biases, num_layers, bidirectional, batch_first)


_STATES = ("h", "c")


def _scan(
    g: Emitter, step: Step, initial: Sequence[Value], mask: Value | None, *, backwards: bool
) -> tuple[Value, list[Value]]:
    pace = -1 if backwards else 1
    names = _STATES[: len(initial)]
    scanned, body = step.product, step.body
    if mask is not None:
        width = int(scanned.shape[2])
        scanned = g.concat([scanned, mask], axis=2)
        parameters = ", ".join(f"{name}: tensor<scalar>" for name in step.full)
        words = {"parameters": parameters, "arguments": ", ".join(step.full)}
        words.update(body=body, width=str(width), after=str(width + 1))
        body, _ = add_fragment(g, f"masked_{''.join(names)}", initial[0].dtype, words=words)
    whole = Expected((step.product.shape[0], *initial[0].shape), initial[0].dtype)
    results = g.call(
        "tract_core_scan",
        body=body,
        scan=[("x", scanned, 0, pace)],
        full=list(step.full.items()),
        state=[(n, v, f"{n}_new") for n, v in zip(names, initial, strict=True)],
        output=[("y", "full", 0, pace), *((f"{n}_new", "last", 0, 1) for n in names)],
        outs=[whole, *(Expected(v.shape, v.dtype) for v in initial)],
    )
    return g.scanned(results[0]), list(results[1:])


def _net(key: str, emit_cell: CellEmitter) -> None:
    name = key.split("::")[1].split(".")[0]

    def one_state(
        g: Emitter, input: Value, hx: Any, params: list[Value], has_biases: bool, num_layers: int, dropout: float,
        train: bool, bidirectional: bool, batch_first: bool,
    ) -> list[Value]:  # fmt: skip
        refuse_dropout(g, dropout, train, num_layers)
        states = hx if isinstance(hx, list) else [hx]
        return emit_rnn_via_fragment(
            g, emit_cell, input, states, params, has_biases, num_layers, bidirectional, batch_first
        )

    one_state.__name__ = name
    one_state.__doc__ = f"torch.{name}: {emit_cell.__doc__ or ''}"
    op(key, target="tract")(one_state)


def _cell(key: str, emit_cell: CellEmitter) -> None:
    name = key.split("::")[1]

    def cell(
        g: Emitter,
        input: Value,
        hx: Any,
        w_ih: Value,
        w_hh: Value,
        b_ih: Value | None = None,
        b_hh: Value | None = None,
    ) -> list[Value]:
        states = hx if isinstance(hx, list) else [hx]
        return emit_cell(g, input, CellWeights(w_ih, w_hh, b_ih, b_hh)).once(states)

    cell.__name__ = name
    op(key, target="tract")(cell)


CELLS: dict[str, CellEmitter] = {
    "lstm": emit_lstm_cell_via_fragment,
    "gru": emit_gru_cell_via_fragment,
    "rnn_tanh": emit_rnn_cell_via_fragment("tanh"),
    "rnn_relu": emit_rnn_cell_via_fragment("relu"),
}

for _kind, _emit in CELLS.items():
    _net(f"aten::{_kind}.input", _emit)
    _cell(f"aten::{_kind}_cell", _emit)
