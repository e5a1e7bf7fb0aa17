"""Exporters of models, each to be called in an environment that has it: `exporter(name)(asked)`.

None checks what it writes: that is done for all alike, in the engine. PyTorch's capture alone writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn

from t2n_core.exporters.exporter import ExportRequest
from t2n_core.exporters.registry import find_exporter
from t2n_core.torch_graph.frontend.inputs import ModelInputs


@dataclass(frozen=True, slots=True)
class Export:
    """A model with its inputs, and the file that is to be written."""

    model: nn.Module
    inputs: Mapping[str, Any]
    outputs: Sequence[str]
    release: str
    path: Path
    axes: Mapping[str, Mapping[int, str]] | None = None
    """The dynamic axes, by input."""
    by_name: bool = False
    """True if the input names are the model's argument names; otherwise it takes inputs by position."""
    check: bool = False
    """Whether our own exporter checks the archive, as it does by default."""


Exporter = Callable[[Export], None]


def _ours() -> Exporter:
    from t2n_core import ModelExport, TractNNEF

    def export(request: Export) -> None:
        captured = ModelExport(request.model, dict(request.inputs), dynamic_axes=request.axes)
        captured.to(TractNNEF(request.release, check_io=request.check), request.path)

    return export


def _other(name: str) -> Exporter:
    """Return an exporter of this package's list, which takes a request."""
    other = find_exporter(name, {})

    def export(request: Export) -> None:
        args, kwargs = ((), dict(request.inputs)) if request.by_name else (tuple(request.inputs.values()), {})
        names = tuple(key for key, value in request.inputs.items() if isinstance(value, torch.Tensor))
        axes = {} if request.axes is None else request.axes
        inputs = ModelInputs(args, kwargs, names)
        other.export(ExportRequest(request.model, inputs, tuple(request.outputs), axes, request.release, request.path))

    return export


def _torch_export() -> Exporter:
    def export(request: Export) -> None:
        torch.export.export(request.model, tuple(request.inputs.values()), strict=False)

    return export


_EXPORTERS: Final[Mapping[str, Callable[[], Exporter]]] = {
    "ours": _ours,
    "torch.export": _torch_export,
}


def exporter(name: str) -> Exporter:
    """Return an exporter whose package is imported, so that no export is timed with it."""
    return _EXPORTERS[name]() if name in _EXPORTERS else _other(name)
