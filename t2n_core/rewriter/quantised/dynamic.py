"""Dynamic quantisation: the grid of an input is computed while the model runs, the output is float.

The grid covers 0 and the smallest and the largest element of the whole tensor. It has 8 bits, or 7 with `reduce_range`,
which qnnpack ignores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from t2n_core.rewriter.quantised.packed import CellWeights, PackedWeight
from t2n_core.rewriter.quantised.products import real_product
from t2n_core.torch_graph.custom_ops.integer_arithmetic import bounded

_SMALLEST_SCALE = 6.1e-5
"""PyTorch uses no smaller scale, since some processors flush 1 / scale to 0."""


@dataclass(frozen=True, slots=True)
class Dynamic:
    """Computes dynamic layers as one engine of PyTorch does."""

    engine: str

    def product(self, x: Tensor, weight: PackedWeight, reduce_range: bool = False, relu: bool = False) -> Tensor:
        """Return the product of a float tensor and a packed weight."""
        numbers, scale = self._on_grid(x, reduce_range)
        real = real_product(numbers, scale, weight)
        return real.relu() if relu else real

    def _on_grid(self, x: Tensor, reduce_range: bool) -> tuple[Tensor, Tensor]:
        """Return the centred integers of a tensor on its own grid, and the scale."""
        high = 127.0 if reduce_range and self.engine != "qnnpack" else 255.0
        lowest, highest = x.amin().clamp(max=0.0), x.amax().clamp(min=0.0)
        exact_scale = (highest - lowest) / high
        scale = torch.clamp(exact_scale, min=_SMALLEST_SCALE)
        zero = torch.round(-lowest / torch.where(exact_scale == 0, scale, exact_scale))
        zero = bounded(zero, 0.0, high)
        numbers = bounded(torch.round(x * (1.0 / scale)) + zero, 0.0, high)
        return numbers - zero, scale

    # ------------------------------------------------------------------------------------------------ recurrent
    def lstm(self, x: Tensor, hx: Any, cells: list[CellWeights], settings: Recurrent) -> tuple[Tensor, Tensor, Tensor]:
        """Return torch.quantized_lstm's output and final states; x [T, B, I], or [B, T, I] with batch_first."""
        (hidden, cell), ends = hx, list[tuple[Tensor, Tensor]]()
        sequence = x.transpose(0, 1) if settings.batch_first else x
        for layer in range(settings.layers):
            directions = []
            for direction in range(settings.directions):
                index = layer * settings.directions + direction
                outs, end = self._lstm_layer(sequence, (hidden[index], cell[index]), cells[index], bool(direction))
                directions.append(outs)
                ends.append(end)
            sequence = directions[0] if len(directions) == 1 else torch.cat(directions, -1)
        out = sequence.transpose(0, 1) if settings.batch_first else sequence
        return out, torch.stack([h for h, _ in ends]), torch.stack([c for _, c in ends])

    def gru(self, x: Tensor, hx: Tensor, cells: list[CellWeights], settings: Recurrent) -> tuple[Tensor, Tensor]:
        """Return torch.quantized_gru's output and final state; shapes as `lstm`."""
        ends = list[Tensor]()
        sequence = x.transpose(0, 1) if settings.batch_first else x
        for layer in range(settings.layers):
            directions = []
            for direction in range(settings.directions):
                index = layer * settings.directions + direction
                outs, end = self._gru_layer(sequence, hx[index], cells[index], bool(direction))
                directions.append(outs)
                ends.append(end)
            sequence = directions[0] if len(directions) == 1 else torch.cat(directions, -1)
        out = sequence.transpose(0, 1) if settings.batch_first else sequence
        return out, torch.stack(ends)

    def _lstm_layer(
        self, x: Tensor, state: tuple[Tensor, Tensor], cell: CellWeights, backwards: bool
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        outs = []
        for gates in _steps(self.product(x, cell.w_ih, reduce_range=True), backwards):
            state = self._lstm_step(gates, state, cell.w_hh)
            outs.append(state[0])
        return torch.stack(outs[::-1] if backwards else outs), state

    def _gru_layer(self, x: Tensor, state: Tensor, cell: CellWeights, backwards: bool) -> tuple[Tensor, Tensor]:
        outs = []
        for gates in _steps(self.product(x, cell.w_ih, reduce_range=True), backwards):
            state = self._gru_step(gates, state, cell.w_hh)
            outs.append(state)
        return torch.stack(outs[::-1] if backwards else outs), state

    def _lstm_step(self, gates: Tensor, state: tuple[Tensor, Tensor], w_hh: PackedWeight) -> tuple[Tensor, Tensor]:
        hidden, cell = state
        i, f, g, o = (gates + self.product(hidden, w_hh, reduce_range=True)).chunk(4, 1)
        cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
        return o.sigmoid() * cell.tanh(), cell

    def _gru_step(self, gates: Tensor, hidden: Tensor, w_hh: PackedWeight) -> Tensor:
        r, z, n = gates.chunk(3, 1)
        h_r, h_z, h_n = self.product(hidden, w_hh, reduce_range=True).chunk(3, 1)
        reset, update = (r + h_r).sigmoid(), (z + h_z).sigmoid()
        new = (n + reset * h_n).tanh()
        return (hidden - new) * update + new

    def lstm_cell(self, x: Tensor, hx: Any, w_ih: PackedWeight, w_hh: PackedWeight) -> tuple[Tensor, Tensor]:
        return self._lstm_step(self.product(x, w_ih, reduce_range=True), (hx[0], hx[1]), w_hh)

    def gru_cell(self, x: Tensor, hx: Tensor, w_ih: PackedWeight, w_hh: PackedWeight) -> Tensor:
        return self._gru_step(self.product(x, w_ih, reduce_range=True), hx, w_hh)

    def rnn_cell(self, x: Tensor, hx: Tensor, w_ih: PackedWeight, w_hh: PackedWeight, relu: bool) -> Tensor:
        gates = self.product(x, w_ih, reduce_range=True) + self.product(hx, w_hh, reduce_range=True)
        return gates.relu() if relu else gates.tanh()


@dataclass(frozen=True, slots=True)
class Recurrent:
    """Settings of a recurrent layer."""

    layers: int
    directions: int
    batch_first: bool


def _steps(gates: Tensor, backwards: bool) -> tuple[Tensor, ...]:
    steps: tuple[Tensor, ...] = gates.unbind(0)
    return steps[::-1] if backwards else steps
