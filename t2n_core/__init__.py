"""PyTorch to NNEF, engines from PyPI, and parity checks. Public names load on first use, so that importing is cheap."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from t2n_core.check.tolerance import TractCheckTolerance
    from t2n_core.errors import T2NError
    from t2n_core.export.entry import export_model_to_nnef
    from t2n_core.export.model import ModelExport
    from t2n_core.export.result import ExportResult
    from t2n_core.inference_target import InferenceTarget, KhronosNNEF, TractFeatureFlag, TractNNEF

_HOMES = {
    "ExportResult": "t2n_core.export.result",
    "InferenceTarget": "t2n_core.inference_target",
    "KhronosNNEF": "t2n_core.inference_target",
    "ModelExport": "t2n_core.export.model",
    "T2NError": "t2n_core.errors",
    "TractCheckTolerance": "t2n_core.check.tolerance",
    "TractFeatureFlag": "t2n_core.inference_target",
    "TractNNEF": "t2n_core.inference_target",
    "export_model_to_nnef": "t2n_core.export.entry",
}

__all__ = [
    "ExportResult",
    "InferenceTarget",
    "KhronosNNEF",
    "ModelExport",
    "T2NError",
    "TractCheckTolerance",
    "TractFeatureFlag",
    "TractNNEF",
    "export_model_to_nnef",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
