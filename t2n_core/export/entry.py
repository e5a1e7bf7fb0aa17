"""Export one model for one target in one call. Imports torch and the converter when it is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2n_core.extras import importing, paused_gc

if TYPE_CHECKING:
    from t2n_core.export.result import ExportResult
    from t2n_core.inference_target import InferenceTarget
    from t2n_core.torch_graph.frontend.sources import Model


def export_model_to_nnef(
    model: Model,
    args: Any,
    file_path_export: str | Path,
    inference_target: InferenceTarget,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    compression_level: int | None = None,
    **options: Any,
) -> ExportResult:
    """Export a model and, unless disabled in the target, check the archive in the target's engine.

    Args:
        model, args: see `ModelExport`; a module is never changed.
        file_path_export: a folder, `.tar`, `.tgz` or `.tar.gz`.
        inference_target: `TractNNEF("0.21")`, `KhronosNNEF()`.
        input_names, output_names: names in the archive.
        compression_level: of `.tgz`: 0 to 3.
        options: further options of `ExportOptions`, by name; dynamic axes are those of the target.

    Raises:
        InputError, RewriteError, CaptureError, UnsupportedOpsError, SpecError, WriteError: nothing is written.
        EngineError, ParityError: the check failed; the archive is removed.
    """
    with importing("t2n_core.export_model_to_nnef"), paused_gc():
        from t2n_core.export.model import ModelExport
        from t2n_core.inference_target import require_target
    require_target(inference_target)
    names = {"input_names": input_names, "output_names": output_names}
    export = ModelExport(model, args, kwargs, dynamic_axes=inference_target.dynamic_axes or None, **names, **options)
    return export.to(inference_target, file_path_export, compression_level=compression_level, check=True)


__all__ = ["export_model_to_nnef"]
