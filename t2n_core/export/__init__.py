"""The whole pipeline: options, capture and lowering of a model, the result on disk. Names load on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from t2n_core.export.options import ExportOptions

if TYPE_CHECKING:
    from t2n_core.export.entry import export_model_to_nnef
    from t2n_core.export.model import ModelExport
    from t2n_core.export.result import ExportResult

_HOMES = {"ModelExport": "model", "ExportResult": "result", "export_model_to_nnef": "entry"}

__all__ = ["ExportOptions", "ExportResult", "ModelExport", "export_model_to_nnef"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
