"""The request to an exporter for a model with the options of an export."""

from __future__ import annotations

from pathlib import Path

from t2n_core.errors import RefusedError
from t2n_core.export.exportable_model import ExportableModel
from t2n_core.exporters.exporter import Exporter, ExportRequest
from t2n_core.exporters.samples import samples_of


def request_of(export: ExportableModel, exporter: Exporter, release: str, path: Path) -> ExportRequest:
    """Return the request for a file at `path`.

    Raises RefusedError for what no other exporter is asked for, and InputError if the model does not run.
    """
    axes = {name: {axis: str(size) for axis, size in of.items()} for name, of in export.declared.axes.items()}
    if export.source.state is not None:
        raise RefusedError("the option `state` is not supported for other exporters, which do not pair state tensors")
    if axes and not exporter.has_dynamic_axes:
        raise RefusedError(f"{exporter.name} writes fixed sizes alone")
    outputs = export.options.output_names
    names = [f"output_{i}" for i in range(len(samples_of(export)[0].expected))] if outputs is None else outputs
    return ExportRequest(export.source.as_module(), export.inputs, tuple(names), axes, release, path)
