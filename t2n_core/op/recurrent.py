"""What the recurrent rules of both targets share: layers, directions, batch_first, weights, gate order, states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from t2n_core.nnef.emitter import FLOAT16, FLOAT32, Emitter
from t2n_core.nnef.graph import Value


@dataclass(frozen=True, slots=True)
class CellWeights:
    """Of one layer and direction: w_ih [gates * H, I], w_hh [gates * H, S], biases [gates * H], w_hr [P, H]."""

    w_ih: Value
    w_hh: Value
    b_ih: Value | None = None
    b_hh: Value | None = None
    w_hr: Value | None = None

    def hidden(self, gates: int) -> int:
        return int(self.w_ih.shape[0]) // gates

    def reordered(self, g: Emitter, given: Sequence[str], wanted: Sequence[str]) -> CellWeights:
        """The same with the gates' rows in another order; engines fold this into the constants."""
        if tuple(given) == tuple(wanted):
            return self
        hidden = self.hidden(len(given))

        def move(value: Value | None) -> Value | None:
            if value is None:
                return None
            places = [given.index(gate) for gate in wanted]
            rows = [g.slice(value, axes=[0], begin=[p * hidden], end=[(p + 1) * hidden]) for p in places]
            return g.concat(rows, axis=0)

        w_ih, w_hh = move(self.w_ih), move(self.w_hh)
        assert w_ih is not None
        assert w_hh is not None
        return CellWeights(w_ih, w_hh, move(self.b_ih), move(self.b_hh), self.w_hr)


def split_params(params: Sequence[Value], count: int, has_biases: bool) -> list[CellWeights]:
    """PyTorch's flat weights: per layer and direction w_ih, w_hh, then both biases, then w_hr if there is one."""
    size = len(params) // count
    result = []
    for index in range(count):
        own = list(params[index * size : (index + 1) * size])
        w_ih, w_hh = own[:2]
        b_ih, b_hh = own[2:4] if has_biases else (None, None)
        rest = own[4:] if has_biases else own[2:]
        result.append(CellWeights(w_ih, w_hh, b_ih, b_hh, rest[0] if rest else None))
    return result


def refuse_dropout(g: Emitter, dropout: float, train: bool, num_layers: int) -> None:
    """Raises LowerError where dropout between layers would be active."""
    if train and dropout > 0 and num_layers > 1:
        raise g.fail("dropout between the layers is active: the module is in training mode", hint="call model.eval()")


def stack_states(g: Emitter, states: Sequence[Value]) -> Value:
    """[B, S] of each layer and direction as [layers * directions, B, S]."""
    rows = [g.unsqueeze(s, axes=[0]) for s in states]
    return rows[0] if len(rows) == 1 else g.concat(rows, axis=0)


RunLayer = Callable[[Value, CellWeights, list[Value], bool], tuple[Value, list[Value]]]
"""(sequence [T, B, I], weights, initial states [B, S], backwards) -> (sequence [T, B, S], final states [B, S])."""


def emit_layers(
    g: Emitter,
    run: RunLayer,
    input: Value,
    states: Sequence[Value],
    params: Sequence[Value],
    has_biases: bool,
    num_layers: int,
    bidirectional: bool,
    batch_first: bool,
) -> list[Value]:
    """The last layer's sequence and the final states, as PyTorch orders them: index of a state is 2 * layer + way."""
    if g.options.linear_accumulation_in_f32 and input.dtype == FLOAT16:  # also the products inside of the scans
        input, *states = (g.cast(v, FLOAT32) for v in (input, *states))
        params = [g.cast(p, FLOAT32) for p in params]
        found = emit_layers(g, run, input, states, params, has_biases, num_layers, bidirectional, batch_first)
        return [g.cast(v, FLOAT16) for v in found]
    ways = 2 if bidirectional else 1
    weights = split_params(params, num_layers * ways, has_biases)
    sequence = g.permute(input, [1, 0, 2]) if batch_first else input
    last: list[list[Value]] = []
    for layer in range(num_layers):
        both = []
        for way in range(ways):
            index = layer * ways + way
            initial = [g.squeeze(g.take(s, 0, index, index + 1), axes=[0]) for s in states]
            whole, final = run(sequence, weights[index], initial, way == 1)
            both.append(whole)
            last.append(final)
        sequence = both[0] if ways == 1 else g.concat(both, axis=2)
    out = g.permute(sequence, [1, 0, 2]) if batch_first else sequence
    return [out, *(stack_states(g, [final[i] for final in last]) for i in range(len(states)))]
