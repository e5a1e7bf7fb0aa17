"""Export architectures of the suite `models`: `python -m conformance.lab.measure.peers.architectures < jobs > answers`.

One job per line, as JSON: {"exporter": "torch-to-nnef", "name": "timm-beit", "release": "0.23.9", "axes": "suite",
"check": true, "folder": …, "file": "model.nnef.tgz"}; one answer per line. It runs in the environment of the exporter.
Beside the archive are the inputs and PyTorch's outputs of several examples, as arrays by name and by position.
"""

from __future__ import annotations

import importlib
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from torch.utils import _pytree as pytree

from conformance.lab.measure.peers.jobs import answer_jobs
from conformance.lab.timing import Stopwatch

if TYPE_CHECKING:
    from conformance.cases.models.case import ModelCase

EXAMPLES = 2
TIMED_SECONDS = 0.3
ARCHIVE = "model.nnef.tgz"
Axes: TypeAlias = dict[str, dict[int, str]] | None


class Flat(torch.nn.Module):
    """A model that takes tensors by position, and returns a tuple of tensors: what every exporter takes."""

    def __init__(self, model: torch.nn.Module, names: list[str]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found = self.model(**dict(zip(self.names, tensors, strict=True)))
        return tuple(leaf for leaf in pytree.tree_leaves(found) if isinstance(leaf, torch.Tensor))


def case_of(name: str) -> ModelCase:
    """Return the case of an architecture, such as `torchvision-resnet18`."""
    library, _, architecture = name.partition("-")
    importlib.import_module("conformance.cases.models.libraries")  # before the libraries themselves
    found: dict[str, ModelCase] = importlib.import_module(f"conformance.cases.models.{library}").CASES
    return found[architecture]


def work(job: dict[str, Any]) -> dict[str, Any]:
    torch.set_num_threads(1)
    folder, case = Path(job["folder"]), case_of(job["name"])
    model, example = case.build(zlib.crc32(job["name"].encode()))
    examples = [example, *(case.inputs() for _ in range(EXAMPLES - 1))]
    flat = Flat(model, list(example)).eval()
    for number, one in enumerate(examples):
        with torch.no_grad():
            outputs = flat(*(_copy(value) for value in one.values()))
        tensors = {name: value.numpy() for name, value in one.items() if isinstance(value, torch.Tensor)}
        np.savez(folder / f"inputs_{number}.npz", **tensors)
        np.savez(folder / f"outputs_{number}.npz", *(tensor.numpy() for tensor in outputs))
    began = time.perf_counter()
    axes = {"": None, "suite": case.dynamic_axes, "batch": case.axes_with_batch(example)}[job["axes"]]
    with torch.no_grad():
        if job["exporter"] == "ours":
            _export_ours(flat, example, axes, job["release"], folder / job["file"], job["check"])
        elif job["exporter"] == "torch-onnx":
            _export_onnx(flat, example, axes, folder / job["file"])
        else:
            _export_theirs(flat, example, len(outputs), axes, job["release"], folder)
        seconds = time.perf_counter() - began
        return {"seconds": seconds, "torch_ms": _least_ms(model, example)}


def _least_ms(model: torch.nn.Module, example: dict[str, Any]) -> float:
    """Return the milliseconds of CPU of PyTorch's fastest run, on one thread."""
    least, whole = float("inf"), Stopwatch()
    while whole.wall < TIMED_SECONDS:
        watch = Stopwatch()
        model(**{name: _copy(value) for name, value in example.items()})
        least = min(least, watch.cpu)
    return 1e3 * least


def _copy(value: Any) -> Any:
    """Return a copy of a tensor; a number, which is a constant of the archive, as it is."""
    return value.clone() if isinstance(value, torch.Tensor) else value


def _export_ours(model: Flat, example: dict[str, Any], axes: Axes, release: str, to: Path, check: bool) -> None:
    from t2n_core import ModelExport, TractNNEF

    # the model itself: names and axes are those of its own arguments
    ModelExport(model.model, example, dynamic_axes=axes).to(TractNNEF(release, check_io=check), to)


def _export_onnx(model: Flat, example: dict[str, Any], axes: Axes, to: Path) -> None:
    shapes = {name: dict.fromkeys(axes.get(name, ()), torch.export.Dim.DYNAMIC) for name in example} if axes else None
    torch.onnx.export(
        model.model, (), to, kwargs=example, dynamo=True, verbose=False, external_data=False,
        dynamic_shapes=shapes,
    )  # fmt: skip


def _export_theirs(model: Flat, example: dict[str, Any], outputs: int, axes: Axes, release: str, to: Path) -> None:
    from torch_to_nnef import export_model_to_nnef

    from conformance.lab.measure.peers.torch_to_nnef import target

    names = [f"output_{number}" for number in range(outputs)]
    options = {"dynamic_axes": axes} if axes else {}
    export_model_to_nnef(
        model, tuple(example.values()), to / ARCHIVE, target(release, to, **options),
        input_names=list(example), output_names=names,
    )  # fmt: skip


if __name__ == "__main__":
    answer_jobs(work)
