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
from torch.utils import _pytree as pytree


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
    """Whether the names of the inputs are those of the model's arguments, which it takes by position else."""
    check: bool = False
    """Whether our own exporter checks the archive, as it does by default."""


Exporter = Callable[[Export], None]


class Flat(nn.Module):
    """A model that takes tensors by position, and returns a tuple of tensors: what every exporter takes."""

    def __init__(self, model: nn.Module, names: Sequence[str]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found = self.model(**dict(zip(self.names, tensors, strict=True)))
        return tuple(leaf for leaf in pytree.tree_leaves(found) if isinstance(leaf, torch.Tensor))


def binary(release: str, folder: Path) -> Path:
    """Return a file in place of tract's command line: torch-to-nnef insists on one that says its version."""
    shim = folder / f"tract-{release}"
    shim.write_text(f"#!/bin/sh\necho tract {release}\n", encoding="utf-8")
    shim.chmod(0o755)
    return shim


def _ours() -> Exporter:
    from t2n_core import ModelExport, TractNNEF

    def export(asked: Export) -> None:
        captured = ModelExport(asked.model, dict(asked.inputs), dynamic_axes=asked.axes)
        captured.to(TractNNEF(asked.release, check_io=asked.check), asked.path)

    return export


def _torch_to_nnef() -> Exporter:
    from torch_to_nnef import TractNNEF, export_model_to_nnef

    def export(asked: Export) -> None:
        options: dict[str, Any] = {"dynamic_axes": asked.axes} if asked.axes else {}
        shim = binary(asked.release, asked.path.parent)
        target = TractNNEF(asked.release, check_io=False, specific_tract_binary_path=shim, **options)
        names = list(asked.inputs)
        model = Flat(asked.model, names).eval() if asked.by_name else asked.model
        inputs, outputs = tuple(asked.inputs.values()), list(asked.outputs)
        export_model_to_nnef(model, inputs, asked.path, target, input_names=names, output_names=outputs)

    return export


def _torch_onnx() -> Exporter:
    def export(asked: Export) -> None:
        shapes: Any = None
        if asked.axes:
            free = {name: dict.fromkeys(asked.axes.get(name, ()), torch.export.Dim.DYNAMIC) for name in asked.inputs}
            shapes = free if asked.by_name else tuple(free.values())
        args, kwargs = ((), dict(asked.inputs)) if asked.by_name else (tuple(asked.inputs.values()), {})
        torch.onnx.export(
            asked.model, args, asked.path, kwargs=kwargs, dynamo=True, verbose=False, external_data=False,
            dynamic_shapes=shapes,
        )  # fmt: skip

    return export


def _torch_export() -> Exporter:
    def export(asked: Export) -> None:
        torch.export.export(asked.model, tuple(asked.inputs.values()), strict=False)

    return export


_EXPORTERS: Final[Mapping[str, Callable[[], Exporter]]] = {
    "ours": _ours,
    "torch.export": _torch_export,
    "torch-to-nnef": _torch_to_nnef,
    "torch-onnx": _torch_onnx,
}


def exporter(name: str) -> Exporter:
    """Return an exporter whose package is imported, so that no export is timed with it."""
    return _EXPORTERS[name]()
