"""Export one model for one target in one call. Imports torch and the converter when it is called."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2n_core.errors import InputError
from t2n_core.extras import importing, loading_modules

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
        file_path_export: a folder, `.tar`, `.tgz` or `.tar.gz`; `.nnef` is `.nnef.tgz`, with a warning.
        inference_target: `TractNNEF("0.21")`, `KhronosNNEF()`.
        input_names, output_names: names in the archive.
        compression_level: of `.tgz`: 0 to 3; gzip's higher ones are 3, with a warning.
        options: further options of `ExportOptions`, and of the target, by name: `reify_sdpa_operator=True`. Given in
            the target too, they must be the same; what chooses the engine, such as `version`, is given there alone.

    Raises:
        InputError, RewriteError, CaptureError, UnsupportedOpsError, SpecError, WriteError: nothing is written.
        EngineError, ParityError: the check failed; the archive is removed.
    """
    with importing("t2n_core.export_model_to_nnef"), loading_modules():
        from t2n_core.export.model import ModelExport
        from t2n_core.export.old_options import take_old_options, take_old_path
        from t2n_core.inference_target import require_target
    require_target(inference_target)
    options, compression_level = take_old_options(options, compression_level)
    inference_target = _with_own_options(inference_target, options)
    axes = options.pop("dynamic_axes", None)
    if axes is None:
        axes = inference_target.dynamic_axes or None
    names = {"input_names": input_names, "output_names": output_names}
    export = ModelExport(model, args, kwargs, dynamic_axes=axes, **names, **options)
    path = take_old_path(file_path_export)
    return export.to(inference_target, path, compression_level=compression_level, check=True)


def _with_own_options(target: InferenceTarget, options: dict[str, Any]) -> InferenceTarget:
    """Return the target with the options that it takes too, removed from `options`.

    Raises InputError for another value than the target's own, and for options that only its class takes.
    """
    from t2n_core.export.options import ExportOptions

    kind = type(target)
    of_target = {name: options.pop(name) for name in target.OPTIONS if name in options}
    for name, value in of_target.items():
        if target.has_other(name, value):
            raise InputError(f"{name} of the export and of its target differ", hint="pass it once")
    class_options = set(inspect.signature(kind).parameters) - {option.name for option in fields(ExportOptions)}
    for name in options:
        if name in class_options:
            raise InputError(f"`{name}` is an option of the target", hint=f"write {kind.__name__}(…, {name}=…)")
    return target.with_options(**of_target) if of_target else target
