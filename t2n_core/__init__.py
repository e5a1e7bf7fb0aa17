"""PyTorch to NNEF, engines from PyPI, and parity checks. Public names load on first use, so that importing is cheap."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from t2n_core.errors import (
        DroppedResultWarning,
        EngineIndexWarning,
        ExtractorWarning,
        FrozenDecisionWarning,
        OptionWarning,
        PrecisionWarning,
        RangeWarning,
        RewriteWarning,
        StateWarning,
        T2NError,
        T2NWarning,
        UntestedTorchWarning,
    )
    from t2n_core.export.assertion import assert_nnef_parity
    from t2n_core.export.entry import export_model_to_nnef
    from t2n_core.export.model import ModelExport
    from t2n_core.export.result import ExportResult
    from t2n_core.export.tensors import export_tensors, replace_tensors
    from t2n_core.exporters.exporter import DeclaredSizes, Exporter, ExportRequest
    from t2n_core.inference_target import InferenceTarget, KhronosNNEF, TractFeatureFlag, TractNNEF
    from t2n_core.nnef.options.weight_choice import StoredAs
    from t2n_core.parity.tolerance import TractCheckTolerance

__version__ = "0.1.0"
"""The version of the distribution: the build, `t2n --version` and `pytest_t2n` take it from here."""

_HOMES = {
    "DeclaredSizes": "t2n_core.exporters.exporter",
    "ExportRequest": "t2n_core.exporters.exporter",
    "ExportResult": "t2n_core.export.result",
    "Exporter": "t2n_core.exporters.exporter",
    "InferenceTarget": "t2n_core.inference_target",
    "KhronosNNEF": "t2n_core.inference_target",
    "ModelExport": "t2n_core.export.model",
    "StoredAs": "t2n_core.nnef.options.weight_choice",
    "TractCheckTolerance": "t2n_core.parity.tolerance",
    "TractFeatureFlag": "t2n_core.inference_target",
    "TractNNEF": "t2n_core.inference_target",
    "assert_nnef_parity": "t2n_core.export.assertion",
    "export_model_to_nnef": "t2n_core.export.entry",
    "export_tensors": "t2n_core.export.tensors",
    "replace_tensors": "t2n_core.export.tensors",
}
"""The modules of the names that are not in `t2n_core.errors`."""

__all__ = [
    "DeclaredSizes",
    "DroppedResultWarning",
    "EngineIndexWarning",
    "ExportRequest",
    "ExportResult",
    "Exporter",
    "ExtractorWarning",
    "FrozenDecisionWarning",
    "InferenceTarget",
    "KhronosNNEF",
    "ModelExport",
    "OptionWarning",
    "PrecisionWarning",
    "RangeWarning",
    "RewriteWarning",
    "StateWarning",
    "StoredAs",
    "T2NError",
    "T2NWarning",
    "TractCheckTolerance",
    "TractFeatureFlag",
    "TractNNEF",
    "UntestedTorchWarning",
    "assert_nnef_parity",
    "export_model_to_nnef",
    "export_tensors",
    "replace_tensors",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from t2n_core.extras import importing, loading_modules

    with importing(f"t2n_core.{name}"), loading_modules():
        value = getattr(import_module(_HOMES.get(name, "t2n_core.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
