"""Estimate to first order, by gradients, how much rounding each tensor to float16 changes the outputs.

A tensor is rounded where the unit that computes it, or a unit that reads it, computes in float16.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import torch

from t2n_core.torch_graph.graph.evaluate import results_of
from t2n_core.torch_graph.graph.ir import TensorVariable, TorchModuleIRGraph, TorchOp
from t2n_core.torch_graph.precision.units import MOVERS, Unit, name_of, unit_of

_PROBES: Final = 8
"""Random sums of the outputs whose gradients are taken."""


@dataclass(frozen=True, slots=True)
class Rounding:
    """One tensor as one operator reads it, or as an output."""

    units: frozenset[Unit]
    """Any of these in float16 rounds it."""
    error: float
    """The squared error of the outputs that the rounding causes, each output in units of its largest absolute value."""


def roundings_of(graph: TorchModuleIRGraph, inputs: Sequence[torch.Tensor], sizes: Mapping[str, int]) -> list[Rounding]:
    """Estimate each rounding's effect on the outputs; values that no gradient reaches are left out.

    A unit whose inputs and outputs are exactly representable in float16 gets an error of 0.
    """
    with torch.inference_mode(False), torch.enable_grad():
        return _Estimate(graph, inputs).run(sizes)


class _Estimate:
    def __init__(self, graph: TorchModuleIRGraph, inputs: Sequence[torch.Tensor]) -> None:
        self._graph = graph
        self._known = {id(v): t.detach().clone() for v, t in zip(graph.inputs, inputs, strict=True)}
        self._sources: dict[int, frozenset[Unit]] = {}
        """The units that computed the elements of a tensor, which other operators may have moved since."""
        self._scales: list[torch.Tensor] = []
        """A factor for each rounding: zero, since the graph computes in float32."""
        self._units: list[frozenset[Unit]] = []
        self._exact: set[Unit] = set()
        """Units that round only values which float16 represents exactly."""

    def run(self, sizes: Mapping[str, int]) -> list[Rounding]:
        for op in self._graph.op_nodes:
            unit = unit_of(op)
            values = [self._value(v) for v in op.inputs]
            present = [value for value in values if value is not None]
            results = self._results(op, unit, present, sizes) if len(present) == len(values) else None
            if results is None:
                continue
            moved = [self._sources.get(id(v), frozenset()) for v in op.inputs] if name_of(op.kind) in MOVERS else []
            sources = frozenset({unit} if unit is not None else set()).union(*moved)
            for variable, result in zip(op.outputs, results, strict=True):
                if variable is not None:
                    self._known[id(variable)], self._sources[id(variable)] = result, sources
        computed = [(v, value) for v in self._graph.outputs if (value := self._value(v)) is not None]
        outputs = [self._with_rounding(v, value, set()) for v, value in computed]
        harmless = self._exact.difference(*self._units)
        estimated = self._estimate([out for out in outputs if out.requires_grad])
        return [*estimated, *(Rounding(frozenset({unit}), 0.0) for unit in sorted(harmless))]

    def _results(
        self, op: TorchOp, unit: Unit | None, values: Sequence[torch.Tensor], sizes: Mapping[str, int]
    ) -> list[torch.Tensor] | None:
        """Return the results of an operator; None if they cannot be computed here.

        Its weights are not rounded where it has no gradients for them, as for the statistics of a batch norm.
        """
        pairs = list(zip(op.inputs, values, strict=True))
        computed = (
            values if unit is None else [self._with_rounding(v, t, {unit}) if v.data is None else t for v, t in pairs]
        )
        all_rounded = [
            self._with_rounding(v, t, {unit}) if unit and v.data is not None else c
            for (v, t), c in zip(pairs, computed, strict=True)
        ]
        for tensors in (all_rounded, computed, values):
            try:
                return [_derivable(op, tensors, result) for result in results_of(op, tensors, sizes)]
            except (NotImplementedError, RuntimeError, TypeError):
                continue
        return None

    def _value(self, variable: TensorVariable) -> torch.Tensor | None:
        return self._known.get(id(variable)) if variable.data is None else variable.data.detach()

    def _with_rounding(self, variable: TensorVariable, value: torch.Tensor, reader: set[Unit]) -> torch.Tensor:
        """Return a value plus its float16 rounding error times a factor of zero, whose gradient measures the effect."""
        units = self._sources.get(id(variable), frozenset()) | reader
        if value.dtype is not torch.float32 or not units:
            return value
        lost = (value.detach().half().float() - value.detach()).nan_to_num(0.0, 0.0, 0.0)
        if not lost.any():
            self._exact |= units
            return value
        self._scales.append(torch.zeros((), requires_grad=True))
        self._units.append(units)
        return value + self._scales[-1] * lost

    def _estimate(self, outputs: Sequence[torch.Tensor]) -> list[Rounding]:
        if not outputs or not self._scales:
            return []
        errors = torch.zeros(len(self._scales))
        draw = torch.Generator().manual_seed(0)
        for _ in range(_PROBES):
            probed = torch.zeros(())
            for out in outputs:
                finite = torch.where(out.detach().isfinite(), out, 0.0)
                signs = torch.randint(0, 2, out.shape, generator=draw) * 2.0 - 1.0
                probed = probed + (finite * signs).sum() / finite.detach().abs().max().clamp(min=1e-30)
            gradients = torch.autograd.grad(probed, self._scales, retain_graph=True, materialize_grads=True)
            errors += torch.stack(gradients).square().nan_to_num(0.0, 0.0, 0.0) / _PROBES
        pairs = zip(self._units, errors.tolist(), strict=True)
        return [Rounding(units, error) for units, error in pairs if error > 0]


def _derivable(op: TorchOp, values: Sequence[torch.Tensor], result: torch.Tensor) -> torch.Tensor:
    """Return a result that gradients pass through, or the same values as a constant."""
    if name_of(op.kind) == "copy":
        return values[1].to(result.dtype).expand(result.shape)
    return result.detach() if type(result.grad_fn).__name__ == "NotImplemented" else result
