"""Find the units that cannot be computed in float16, from one run of the model in float32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import torch

from t2n_core.torch_graph.graph.evaluate import evaluate_graph
from t2n_core.torch_graph.graph.ir import TorchModuleIRGraph, TorchOp
from t2n_core.torch_graph.precision.units import MOVERS, Unit, name_of, unit_of

_LARGE: Final = torch.finfo(torch.float16).max / 2
"""A margin of 2, since other inputs may lead to larger values."""
_SMALL: Final = torch.finfo(torch.float16).tiny
_BOUNDING: Final = ("clamp", "maximum", "minimum", "max", "min")


def ruled_out(graph: TorchModuleIRGraph, inputs: Sequence[torch.Tensor], sizes: Mapping[str, int]) -> dict[Unit, str]:
    """Return the units of a simplified graph that must stay float32, each with the reason."""
    value = evaluate_graph(graph, inputs, sizes)
    reasons: dict[Unit, str] = {}
    bounded: set[int] = set()
    for op in graph.op_nodes:
        unit = unit_of(op)
        follows = any(id(v) in bounded for v in op.inputs)
        if unit is None:
            if follows and name_of(op.kind) in MOVERS:
                bounded.update(id(o) for o in op.outputs if o is not None)
            continue
        epsilon = _epsilon(op)
        if epsilon:
            bounded.update(id(o) for o in op.outputs if o is not None)
            reasons.setdefault(unit, f"epsilon {epsilon:.0e}")
        elif follows:
            reasons.setdefault(unit, "reads a value that an epsilon bounds")
        tensors = [value(v) for v in (*op.inputs, *(o for o in op.outputs if o is not None))]
        largest = max((_largest(t) for t in tensors if t is not None and t.is_floating_point()), default=0.0)
        results = [value(o) for o in op.outputs if o is not None]
        smallest = max((_largest(t) for t in results if t is not None and t.is_floating_point()), default=1.0)
        if largest > _LARGE:
            reasons.setdefault(unit, f"values of {largest:.1e}")
        elif 0 < smallest < _SMALL:
            reasons.setdefault(unit, f"results below {smallest:.1e}")
    return reasons


def _epsilon(op: TorchOp) -> float:
    """Return a bound that is zero in float16, or nearly so; 0 if there is none."""
    if not name_of(op.kind).startswith(_BOUNDING):
        return 0.0
    numbers = [a for a in op.arguments.values() if isinstance(a, float)]
    numbers += [float(v.data) for v in op.inputs if v.data is not None and v.data.numel() == 1]
    return next((abs(a) for a in numbers if 0 < abs(a) < _SMALL), 0.0)


def _largest(tensor: torch.Tensor) -> float:
    finite = tensor[tensor.isfinite()]
    return float(finite.abs().max()) if finite.numel() else 0.0
