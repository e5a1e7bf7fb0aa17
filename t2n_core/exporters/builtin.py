"""Exporters that this package knows: two ways of torch.onnx, torch-to-nnef, and two that convert ONNX files to NNEF."""

from __future__ import annotations

import functools
import inspect
import shutil
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Final

import torch

from t2n_core.exporters.exporter import DeclaredSizes, Exporter, ExportRequest
from t2n_core.scratch import scratch_folder
from t2n_core.torch_graph.frontend.pytree.structure import map_leaves

_ONNX: Final = ("onnx>=1.23", "onnxscript>=0.7")


class TorchOnnx(Exporter):
    """`torch.onnx.export` by torch.export, whose dynamic axes are 2 or larger."""

    name = "torch-onnx"
    format = "onnx"
    requirements = _ONNX
    follows_release = False
    distribution = "torch"

    def warm_up(self) -> None:
        """Export a module without parameters, and keep the registry that each export builds: 2/3 of a small export."""
        with suppress(ImportError, AttributeError):  # private: another torch may build it elsewhere
            registry = import_module("torch.onnx._internal.exporter._registration").ONNXRegistry
            registry.from_torchlib = staticmethod(functools.cache(registry.from_torchlib))
        with scratch_folder() as folder:
            torch.onnx.export(torch.nn.ReLU(), (torch.ones(2),), folder / "model.onnx", dynamo=True, verbose=False)

    def export(self, request: ExportRequest) -> DeclaredSizes:
        torch.onnx.export(
            request.model,
            request.inputs.args,
            request.path,
            kwargs=dict(request.inputs.kwargs),
            input_names=list(request.input_names),
            output_names=list(request.output_names),
            dynamic_shapes=_dynamic_shapes(request),
            dynamo=True,
            verbose=False,
            external_data=False,
        )
        return DeclaredSizes(default=(2, None))  # of which torch.export treats 0 and 1 apart


class TorchOnnxScript(Exporter):
    """`torch.onnx.export` by torch.jit.trace."""

    name = "torch-onnx-torchscript"
    format = "onnx"
    requirements = _ONNX
    follows_release = False
    distribution = "torch"
    opset: ClassVar[int | None] = None

    def export(self, request: ExportRequest) -> None:
        self.write(request, request.path)

    def write(self, request: ExportRequest, path: Path) -> None:
        """Write the model to a path."""
        model, tensors = request.flat()
        torch.onnx.export(
            model,
            tensors,
            path,
            input_names=list(request.input_names),
            output_names=list(request.output_names),
            dynamic_axes={name: dict(axes) for name, axes in request.dynamic_axes.items()} or None,
            opset_version=self.opset,
            dynamo=False,
        )


class TorchToNnef(Exporter):
    """torch-to-nnef, by its `export_model_to_nnef`."""

    name = "torch-to-nnef"
    requirements = ("torch-to-nnef>=0.24.12",)
    distribution = "torch-to-nnef"

    def warm_up(self) -> None:
        """Import the package."""
        import_module("torch_to_nnef")

    def export(self, request: ExportRequest) -> None:
        from torch_to_nnef import TractNNEF, export_model_to_nnef

        axes = {name: dict(axes) for name, axes in request.dynamic_axes.items()}
        model, tensors = request.flat()
        with scratch_folder() as folder:
            target = TractNNEF(
                request.release,
                check_io=False,
                specific_tract_binary_path=command_line(request.release, folder),
                **({"dynamic_axes": axes} if axes else {}),
            )
            names = list(request.input_names), list(request.output_names)
            export_model_to_nnef(model, tensors, request.path, target, input_names=names[0], output_names=names[1])


class TractConvert(Exporter):
    """The writer of tract itself, in the release, of the file of `torch-onnx`."""

    name = "tract-convert"
    converts = TorchOnnx.name
    distribution = "torch"

    def export(self, request: ExportRequest) -> None:
        from t2n_core.engine import engine_for, resolve_engines
        from t2n_core.engine.tract.engine import TractEngine
        from t2n_core.onnx_file.conversion import write_converted

        assert request.source is not None
        (release,) = resolve_engines(request.release, offline=True, allow_unlisted=True)
        engine = engine_for(release)
        assert isinstance(engine, TractEngine), "a release is a wheel"
        write_converted(engine, request.source, request.path)


class NnefTools(Exporter):
    """The converter of Khronos's nnef-tools, from an ONNX file of opset 13 with fixed sizes to flat NNEF."""

    name = "nnef-tools"
    requirements = ("onnx>=1.23", "nnef>=1.0.10", "nnef-tools>=1.0.11")
    follows_release = False
    writes_standard = True
    has_dynamic_axes = False
    distribution = "nnef-tools"

    def export(self, request: ExportRequest) -> None:
        with scratch_folder() as folder:
            model, archive = folder / "model.onnx", folder / "model.nnef"
            _Opset13().write(request, model)
            command = [sys.executable, "-m", "nnef_tools.convert", "--input-format", "onnx", "--output-format", "nnef"]
            command += ["--input-model", str(model), "--output-model", str(archive), "--compress", "1"]
            ended = subprocess.run(command, capture_output=True, text=True, check=False)
            if ended.returncode:
                raise RuntimeError((ended.stderr or ended.stdout).strip())
            shutil.move(archive.with_name("model.nnef.tgz"), request.path)


class _Opset13(TorchOnnxScript):
    """The newest opset whose operators nnef-tools converts."""

    opset = 13


def _dynamic_shapes(request: ExportRequest) -> dict[str, Any] | None:
    """Return the dynamic axes by the parameters of `forward`, nested as the arguments are; None without any."""
    if not request.dynamic_axes:
        return None
    inputs = request.inputs
    names = iter(inputs.names)

    def axes_of(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return None
        return dict.fromkeys(request.dynamic_axes.get(next(names), ()), torch.export.Dim.DYNAMIC)

    args, kwargs = map_leaves((inputs.args, inputs.kwargs), axes_of)
    return dict(inspect.signature(request.model.forward).bind(*args, **kwargs).arguments)


def command_line(release: str, folder: Path) -> Path:
    """Return a substitute for tract's command line: torch-to-nnef insists on one that names its version."""
    path = folder / f"tract-{release}"
    path.write_text(f"#!/bin/sh\necho tract {release}\n", encoding="utf-8")
    path.chmod(0o755)
    return path
