"""Recurrent nets for the Khronos standard, which has no loops: every step is written out, so the length is fixed.

Formulas are as in torch.nn.LSTM, GRU and RNN; layers, directions and states are shared with the lowering to scans.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from t2n_core.nnef.emitter import Emitter, Expected
from t2n_core.nnef.graph import Value
from t2n_core.op.recurrent import CellWeights, EmitCell, EmitNet, Net, emit_layers, register_recurrent


def _linear(g: Emitter, x: Value, weight: Value, bias: Value | None) -> Value:
    return g.linear(x, weight) if bias is None else g.linear(x, weight, g.lift(bias, 2))


def _gates(g: Emitter, value: Value, count: int) -> tuple[Value, ...]:
    hidden = int(value.shape[1]) // count
    return g.call("split", value, axis=1, ratios=[1] * count, outs=[_like(value, hidden)] * count)


def _like(value: Value, width: int) -> Expected:
    return Expected((value.shape[0], width), value.dtype)


def lstm_step(g: Emitter, x: Value, states: Sequence[Value], w: CellWeights) -> list[Value]:
    h, c = states
    total = g.add(_linear(g, x, w.w_ih, w.b_ih), _linear(g, h, w.w_hh, w.b_hh))
    i, f, u, o = _gates(g, total, 4)
    c_new = g.add(g.mul(g.sigmoid(f), c), g.mul(g.sigmoid(i), g.tanh(u)))
    h_new = g.mul(g.sigmoid(o), g.tanh(c_new))
    return [h_new if w.w_hr is None else g.matmul(h_new, w.w_hr, transposeB=True), c_new]


def gru_step(g: Emitter, x: Value, states: Sequence[Value], w: CellWeights) -> list[Value]:
    (h,) = states
    rx, zx, nx = _gates(g, _linear(g, x, w.w_ih, w.b_ih), 3)
    rh, zh, nh = _gates(g, _linear(g, h, w.w_hh, w.b_hh), 3)
    r, z = g.sigmoid(g.add(rx, rh)), g.sigmoid(g.add(zx, zh))
    n = g.tanh(g.add(nx, g.mul(r, nh)))
    return [g.add(n, g.mul(z, g.sub(h, n)))]


def rnn_step(activation: str) -> EmitCell:
    def step(g: Emitter, x: Value, states: Sequence[Value], w: CellWeights) -> list[Value]:
        total = g.add(_linear(g, x, w.w_ih, w.b_ih), _linear(g, states[0], w.w_hh, w.b_hh))
        return list(g.call(activation, total))

    return step


def emit_rnn_unrolled(emit_step: EmitCell, g: Emitter, input: Value, states: Sequence[Value], net: Net) -> list[Value]:
    """Write a net step by step, without a loop. Raises LowerError for a dynamic time axis."""
    steps = input.shape[1 if net.batch_first else 0]
    if not isinstance(steps, int):
        raise g.fail(
            f"the time axis {steps} is dynamic; NNEF 1.0 has neither loops nor dynamic sizes",
            hint="export one archive per length for this target, or use the tract target",
        )

    def run(sequence: Value, weights: CellWeights, initial: list[Value], backwards: bool) -> tuple[Value, list[Value]]:
        expected = Expected(sequence.shape[1:], sequence.dtype)
        inputs = g.call("unstack", sequence, axis=0, outs=[expected] * steps)
        current, seen = initial, [initial[0]] * steps
        for t in reversed(range(steps)) if backwards else range(steps):
            new = emit_step(g, inputs[t], current, weights)
            if net.active is not None:
                new = [_update_active(g, n, old, net.active[t]) for n, old in zip(new, current, strict=True)]
            current = new
            seen[t] = current[0]
        return g.stack(seen, axis=0), current

    return emit_layers(g, run, input, states, net)


def _update_active(g: Emitter, new: Value, old: Value, active: int) -> Value:
    """Return the new state for the first `active` rows, the old one for the rest."""
    if active == new.shape[0]:
        return new
    return g.concat([g.take(new, 0, 0, active), g.take(old, 0, active, old.shape[0])], axis=0)


STEPS: dict[str, EmitCell] = {
    "lstm": lstm_step,
    "gru": gru_step,
    "rnn_tanh": rnn_step("tanh"),
    "rnn_relu": rnn_step("relu"),
}
NETS: dict[str, EmitNet] = {kind: partial(emit_rnn_unrolled, step) for kind, step in STEPS.items()}

for _kind, _step in STEPS.items():
    register_recurrent(_kind, "khronos", NETS[_kind], _step)
