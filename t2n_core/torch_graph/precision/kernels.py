"""Convolutions of halves on processors for which tract has no kernels: how long they take."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import Final

from t2n_core.nnef.sizes.dims import evaluate, product
from t2n_core.torch_graph.graph.ir import TorchModuleIRGraph, TorchOp
from t2n_core.torch_graph.precision.units import Unit, name_of, unit_of

_X86: Final = frozenset({"x86_64", "amd64"})
_STEP: Final = 7e-9
"""Seconds of a multiply-add in the scalar loop that tract takes on x86."""
_SLOW: Final = 1.0
"""Seconds of a run from which on convolutions are left in float32."""


def lacks_kernels() -> bool:
    """Return whether tract has no kernels for products of halves on this machine."""
    return platform.machine().lower() in _X86


def too_slow(graph: TorchModuleIRGraph, sizes: Mapping[str, int]) -> dict[Unit, str]:
    """Return the convolutions of a graph, with the reason, if they would take too long in halves on this machine."""
    found = [(unit, op) for op in graph.op_nodes if (unit := unit_of(op)) is not None and "conv" in name_of(op.kind)]
    seconds = _STEP * sum(_multiply_adds(op, sizes) for _, op in found)
    if not lacks_kernels() or seconds < _SLOW:
        return {}
    return {unit: f"no kernels of float16 on {platform.machine()}: {seconds:.0f} s a run" for unit, _ in found}


def _multiply_adds(op: TorchOp, sizes: Mapping[str, int]) -> int:
    """Return the multiply-adds of a convolution: each element of its result, or of its input, meets a filter."""
    out, weight = op.outputs[0], op.arguments["weight"]
    is_transposed = "transpose" in name_of(op.kind) or bool(op.arguments.get("transposed", False))
    elements = op.arguments["input"].shape if is_transposed or out is None else out.shape
    return int(evaluate(product(elements), sizes)) * int(evaluate(product(weight.shape[1:]), sizes))


__all__ = ["lacks_kernels", "too_slow"]
