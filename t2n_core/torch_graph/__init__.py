"""The model as PyTorch describes it: capture, the torch graph, and its passes. Public names load on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from t2n_core.errors import CaptureError as T2NErrorTorchJitTraceFailed
    from t2n_core.torch_graph.capture.tracer import TorchModuleTracer
    from t2n_core.torch_graph.graph.data import FixedTensorList
    from t2n_core.torch_graph.graph.ir import TensorVariable, TorchModuleIRGraph, TorchOp

_HOMES = {
    "FixedTensorList": "t2n_core.torch_graph.graph.data:FixedTensorList",
    "T2NErrorTorchJitTraceFailed": "t2n_core.errors:CaptureError",
    "TensorVariable": "t2n_core.torch_graph.graph.ir:TensorVariable",
    "TorchModuleIRGraph": "t2n_core.torch_graph.graph.ir:TorchModuleIRGraph",
    "TorchModuleTracer": "t2n_core.torch_graph.capture.tracer:TorchModuleTracer",
    "TorchOp": "t2n_core.torch_graph.graph.ir:TorchOp",
}

__all__ = [
    "FixedTensorList",
    "T2NErrorTorchJitTraceFailed",
    "TensorVariable",
    "TorchModuleIRGraph",
    "TorchModuleTracer",
    "TorchOp",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home, _, own_name = _HOMES[name].partition(":")
    return getattr(import_module(home), own_name)
