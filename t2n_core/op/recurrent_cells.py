"""Cells of recurrent nets for tract, in a scan with the input products hoisted out of it, or as a single step.

Shapes and formulas are as in torch.nn.LSTM, GRU, RNN and their cells. Bodies are fragments, `op/fragment/*/*.nnef`,
and which variant is the fastest depends on version, dtype and batch. The parameters of a body name its arguments:

    x_ifgo    one step of x @ w_ih.T and the biases, for these gates in this order [1, B, 4H]
    x_rz_b_n  the same for r and z, followed by the recurrent bias of n
    w_ifgo    rows of w_hh [4H, S]; w_hr [P, H] is the projection
    lifted_…  the same [1, 4H, S], which the releases in SCANS_REPACK (nnef/tract/constants.py) re-pack in every step
    b_n       recurrent bias [1, 1, H]; where no parameter names it, it is part of x_…
    h, c      the states [1, B, S]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from t2n_core.nnef.emitter import Emitter, Expected
from t2n_core.nnef.graph import Value
from t2n_core.nnef.loop_emitter import LoopEmitter
from t2n_core.nnef.sizes.dims import Dim
from t2n_core.op.fragment import add_fragment, find_fragment
from t2n_core.op.recurrent import CellWeights

ScanWriter = Callable[[Sequence[Value], Value | None, bool], tuple[Value, list[Value]]]
"""(initial states [1, B, S], mask, backwards) -> (sequence [T, B, S], final states [1, B, S])."""


@dataclass(frozen=True, slots=True)
class Step:
    """The writers of one cell with its weights."""

    scan: ScanWriter = field(repr=False)
    """The writer of a loop over the time axis of x [T, B, I]."""
    once: Callable[[Sequence[Value]], list[Value]] = field(repr=False)
    """The writer of a single step on x [B, I], from states to states [B, S]."""


CellEmitter = Callable[[Emitter, Value, CellWeights], Step]


@dataclass(frozen=True, slots=True)
class Gates:
    """The weights of one layer and direction by gate; `order` has one letter per gate, as PyTorch orders the rows."""

    g: Emitter
    x: Value
    weights: CellWeights
    order: str

    @property
    def hidden(self) -> int:
        return self.weights.hidden(len(self.order))

    def rows(self, value: Value, gates: str) -> Value:
        """Return the rows of these gates in this order; engines fold this into the constants."""
        if gates == self.order:
            return value
        hidden = self.hidden
        parts: list[tuple[int, int]] = []
        for gate in gates:
            begin = self.order.index(gate) * hidden
            if parts and parts[-1][1] == begin:
                parts[-1] = (parts[-1][0], begin + hidden)
            else:
                parts.append((begin, begin + hidden))
        pieces = [self.g.take(value, 0, begin, end) for begin, end in parts]
        return pieces[0] if len(pieces) == 1 else self.g.concat(pieces, axis=0)

    def recurrent_bias(self, gates: str) -> Value:
        """[H] per gate; zeros for a net without biases."""
        g, bias = self.g, self.weights.b_hh
        if bias is None:
            return g.fill(0.0, (len(gates) * self.hidden,), self.x.dtype)
        return self.rows(bias, gates)

    def product(self, gates: str, apart: str = "") -> Value:
        """x @ w_ih.T with the biases, without the recurrent ones of the gates `apart`: [..., H] per gate."""
        g, x, w = self.g, self.x, self.weights
        # without the axis it is one product in every version, not T of them; 0.21.11 and 0.21.12 cannot pack float64
        single = x.rank == 3 and x.shape[1] == 1 and x.dtype != np.float64
        flat = g.squeeze(x, axes=[1]) if single else x
        out = g.stacked_product(flat, self.rows(w.w_ih, gates))
        biases = [self.rows(b, gates) for b in (w.b_ih, None if gates[0] in apart else w.b_hh) if b is not None]
        if biases:
            out = g.add(out, biases[0] if len(biases) == 1 else g.add(biases[0], biases[1]))
        return g.unsqueeze(out, axes=[1]) if single else out

    def recurrent_product(self, h: Value, gates: str) -> Value:
        """h @ w_hh.T on rank 2."""
        return self.g.matmul(h, self.rows(self.weights.w_hh, gates), transposeB=True)

    def argument(self, parameter: str, apart: str) -> Value:
        """Return the value of a parameter of the loop body; for x_… the value for all steps, [T, B, …]."""
        g, (kind, gates, *rest) = self.g, parameter.split("_")
        if kind in ("w", "lifted"):
            value = self.weights.w_hr if gates == "hr" else self.rows(self.weights.w_hh, gates)
            assert value is not None
            return value if kind == "w" else g.lift(value, 3)
        if kind == "b":
            return g.lift(self.recurrent_bias(gates), 3)
        out = self.product(gates, apart)
        if rest:  # b, gates
            bias = g.lift(self.recurrent_bias(rest[1]), 3)
            out = g.concat([out, g.expand(bias, (*out.shape[:2], bias.shape[2]))], axis=2)
        return out


def lstm_steps(g: Emitter, x: Value, weights: CellWeights) -> Step:
    """Return the writers of an LSTM cell; a single step is one call of the fragment `lstm_cell`.

    i, f, o = sigmoid, g = tanh of x @ w_ih.T + h @ w_hh.T + b; c' = f * c + i * g; h' = o * tanh(c').

    Args:
        g: The emitter.
        x: The input, [T, B, I] for a scan, [B, I] for a single step.
        weights: w_ih [4H, I], w_hh [4H, S], each bias [4H], w_hr [P, H] of a projection; S is P with one, else H. The
            rows are i, f, g, o. Both biases are added up.

    Returns:
        The writers of steps from the states h [1, B, S] and c [1, B, H] of a scan, [B, S] and [B, H] of a single step.
    """
    gates = Gates(g, x, weights, "ifgo")

    def once(states: Sequence[Value]) -> list[Value]:
        h, c = states
        cell, (parameter, _) = add_fragment(g, "lstm_cell", x.dtype, gates.hidden)
        order = parameter.removeprefix("x_")
        total = g.add(gates.product(order), gates.recurrent_product(h, order))
        new = Expected(c.shape, c.dtype)
        return list(g.write(cell, {parameter: total, "c": c}, [new, new]))

    return Step(_scan("lstm_step" if weights.w_hr is None else "lstm_projected_step", gates), once)


def gru_steps(g: Emitter, x: Value, weights: CellWeights) -> Step:
    """Return the writers of a GRU cell; a single step is one call of the fragment `gru_cell`.

    r, z = sigmoid of both products; n = tanh(x part + r * (h part + b_hn)); h' = n + z * (h - n).

    Args:
        g: The emitter.
        x: The input, [T, B, I] for a scan, [B, I] for a single step.
        weights: w_ih [3H, I], w_hh [3H, H], each bias [3H]. The rows are r, z, n. The biases stay apart, since r
            multiplies the recurrent one of n.

    Returns:
        The writers of steps from the state h [1, B, H] of a scan, [B, H] of a single step.
    """
    gates = Gates(g, x, weights, "rzn")
    scan = _scan("gru_step", gates)

    def write(initial: Sequence[Value], mask: Value | None, backwards: bool) -> tuple[Value, list[Value]]:
        results = None if mask is not None or g.options.streaming else _gru_sequence(gates, initial[0], backwards)
        return results or scan(initial, mask, backwards)

    def once(states: Sequence[Value]) -> list[Value]:
        (h,) = states
        cell, (product, recurrent, _) = add_fragment(g, "gru_cell", x.dtype, gates.hidden)
        order = product.removeprefix("x_")
        total = g.add(gates.recurrent_product(h, order), g.lift(gates.recurrent_bias(order), 2))
        arguments = {product: gates.product(order, apart=order), recurrent: total, "h": h}
        return list(g.write(cell, arguments, [Expected(h.shape, h.dtype)]))

    return Step(write, once)


def _gru_sequence(gates: Gates, h: Value, backwards: bool) -> tuple[Value, list[Value]] | None:
    """Write the operator for a whole sequence, which needs constant weights. Return None if no variant applies."""
    g, x, weights = gates.g, gates.x, gates.weights
    if weights.w_ih.weight is None or weights.w_hh.weight is None:
        return None
    substitutions = {"way": "_back" if backwards else "", "pace": "-1" if backwards else "1"}
    variant = find_fragment(g, "gru_sequence", x.dtype, gates.hidden, x.shape[1], substitutions)
    if variant is None:
        return None
    name, parameters = variant
    order = parameters[1].removeprefix("w_")
    recurrent = gates.recurrent_bias(order)
    bias = g.fill(0.0, recurrent.shape, x.dtype) if weights.b_ih is None else gates.rows(weights.b_ih, order)
    by_row, w = g.permute(x, [1, 0, 2]), gates.rows(weights.w_ih, order)
    if x.shape[2] == 1:  # the operator lays out a product over one feature in another way, and refuses it then
        by_row, w = (g.concat([v, g.fill(0.0, v.shape, v.dtype)], axis=v.rank - 1) for v in (by_row, w))
    values = [
        by_row,
        w,
        gates.rows(weights.w_hh, order),
        g.lift(g.concat([bias, recurrent], axis=0), 2),
        h,
    ]
    results = [Expected((x.shape[1], x.shape[0], gates.hidden), x.dtype), Expected(h.shape, h.dtype)]
    sequence, last = g.write(name, dict(zip(parameters, values, strict=True)), results)
    return g.permute(sequence, [1, 0, 2]), [last]


def rnn_steps(activation: str) -> CellEmitter:
    """Return the emitter of a plain cell; a single step is one call of the fragment `rnn_tanh_cell` or `rnn_relu_cell`.

    h' = activation(x @ w_ih.T + h @ w_hh.T + b).

    The emitter takes x [T, B, I] for a scan or [B, I] for a single step, and w_ih [H, I], w_hh [H, H] and biases [H],
    which are added up. Its writers make steps from the state h [1, B, H] of a scan, [B, H] of a single step.

    Args:
        activation: tanh or relu.
    """

    def emit(g: Emitter, x: Value, weights: CellWeights) -> Step:
        gates = Gates(g, x, weights, "h")

        def once(states: Sequence[Value]) -> list[Value]:
            (h,) = states
            cell, _ = add_fragment(g, f"rnn_{activation}_cell", x.dtype)
            total = g.add(gates.product("h"), gates.recurrent_product(h, "h"))
            return list(g.write(cell, {"x_h": total}, [Expected(h.shape, h.dtype)]))

        return Step(_scan(f"rnn_{activation}_step", gates), once)

    return emit


_STATES = ("h", "c")


def _scan(name: str, gates: Gates) -> ScanWriter:
    g, x = gates.g, gates.x
    assert isinstance(g, LoopEmitter)  # the rules of cells in a loop are for targets with loops

    def write(initial: Sequence[Value], mask: Value | None, backwards: bool) -> tuple[Value, list[Value]]:
        batch = 0 if g.is_streamed(x.shape[0]) else x.shape[1]  # that for a batch of 1 joins biases to each step
        body, parameters = add_fragment(g, name, x.dtype, gates.hidden, batch)
        parts = [p.split("_") for p in parameters]
        apart = "".join(w[w.index("b") + 1] for w in parts if "b" in w)
        arguments = {p: gates.argument(p, apart) for p in parameters if p not in _STATES}
        if mask is not None:
            body = _add_masked_body(g, body, parameters, arguments, mask, len(initial))
        if _is_computed(x.shape[1]):
            body = _add_sized_body(g, body, parameters, arguments, x, len(initial))
        pace, states = -1 if backwards else 1, _STATES[: len(initial)]
        results = g.scan(
            x.shape[0],
            body=body,
            scan=[(p, v, 0, pace) for p, v in arguments.items() if p.startswith("x_")],
            full=[(p, v) for p, v in arguments.items() if not p.startswith("x_")],
            state=[(n, v, f"{n}_new") for n, v in zip(states, initial, strict=True)],
            output=[("h_new", "full", 0, pace), *((f"{n}_new", "last", 0, 1) for n in states)],
            outs=[
                Expected((x.shape[0], *initial[0].shape[1:]), x.dtype),
                *(Expected(v.shape, v.dtype) for v in initial),
            ],
        )
        return results[0], list(results[1:])

    return write


def _add_masked_body(
    g: Emitter, body: str, parameters: Sequence[str], arguments: dict[str, Value], mask: Value, states: int
) -> str:
    """Add a body around `body` that keeps the states of ended sequences; the mask is appended to the first product."""
    first, *rest = parameters
    width = int(arguments[first].shape[2])
    arguments[first] = g.concat([arguments[first], mask], axis=2)
    substitutions = {
        "body": body,
        "parameters": ", ".join(f"{p}: tensor<scalar>" for p in parameters),
        "first": first,
        "rest": ", ".join(rest),
        "width": str(width),
        "after": str(width + 1),
    }
    return add_fragment(g, f"masked_{''.join(_STATES[:states])}", mask.dtype, substitutions=substitutions)[0]


def _is_computed(batch: Dim) -> bool:
    """Return True if an engine cannot infer the sizes from the batch; from `T` and `2 * T` it can."""
    if isinstance(batch, int):
        return False
    factor, size = batch.as_coeff_Mul()
    return not (factor.is_Integer and size.is_Symbol)


def _add_sized_body(
    g: Emitter, body: str, parameters: Sequence[str], arguments: dict[str, Value], x: Value, states: int
) -> str:
    """Add a body around `body` that also takes the sizes from which the batch is computed."""
    sizes: list[Dim] = [] if isinstance(x.shape[1], int) else sorted(x.shape[1].free_symbols, key=str)
    if len(sizes) > 3:
        raise g.fail(f"a batch computed from {len(sizes)} sizes is not supported in a recurrent net")
    arguments["sizes"] = g.fill(0.0, (*sizes, *[1] * (3 - len(sizes))), x.dtype)
    first, *rest = parameters
    substitutions = {
        "body": body,
        "parameters": ", ".join(f"{p}: tensor<scalar>" for p in parameters),
        "first": first,
        "rest": ", ".join(rest),
    }
    return add_fragment(g, f"sized_{''.join(_STATES[:states])}", x.dtype, substitutions=substitutions)[0]


CELLS: dict[str, CellEmitter] = {
    "lstm": lstm_steps,
    "gru": gru_steps,
    "rnn_tanh": rnn_steps("tanh"),
    "rnn_relu": rnn_steps("relu"),
}
"""The cells by the names of PyTorch's operators."""
