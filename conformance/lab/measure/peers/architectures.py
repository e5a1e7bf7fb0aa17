"""Jobs that export architectures of the suite `models`.

{"name": "timm-beit", "release": "0.22.4", "axes": "suite", "check": true, "folder": …, "file": "model.nnef.tgz"}.
Beside the archive are the inputs and PyTorch's outputs of several examples, as arrays by name and by position. With
"larger": true there is one more, with one element more along every dynamic axis that the model takes so.
"""

from __future__ import annotations

import contextlib
import importlib
import time
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from conformance.checks.at_one import Axes, in_rows
from conformance.lab.measure.peers.exporters import Export, exporter
from conformance.lab.timing import Stopwatch
from t2n_core.torch_graph.frontend.results import tensors_of

if TYPE_CHECKING:
    from conformance.cases.models.case import Inputs, ModelCase

EXAMPLES = 2
TIMED_SECONDS = 0.3
ARCHIVE = "model.nnef.tgz"
Arrays = tuple[np.ndarray[Any, Any], ...]


def case_of(name: str) -> ModelCase:
    """Return the case of an architecture, such as `torchvision-resnet18`."""
    library, _, architecture = name.partition("-")
    importlib.import_module("conformance.cases.models.libraries")  # before the libraries themselves
    cases: dict[str, ModelCase] = importlib.import_module(f"conformance.cases.models.{library}").CASES
    return cases[architecture]


def work(job: dict[str, Any]) -> dict[str, Any]:
    """Return the seconds of an export, and the milliseconds of a run in PyTorch."""
    torch.set_num_threads(1)
    folder, case = Path(job["folder"]), case_of(job["name"])
    model, example = case.build(zlib.crc32(job["name"].encode()))
    examples = [example, *(case.inputs() for _ in range(EXAMPLES - 1))]
    model.eval()
    axes = {"": None, "suite": case.dynamic_axes, "batch": case.axes_with_batch(example)}[job["axes"]]
    if axes and job.get("larger"):
        examples.append(larger(model, example, axes))
    for number, inputs in enumerate(examples):
        outputs = _run(model, inputs)
        tensors = {name: value.numpy() for name, value in inputs.items() if isinstance(value, torch.Tensor)}
        np.savez(folder / f"inputs_{number}.npz", **tensors)
        np.savez(folder / f"outputs_{number}.npz", *(tensor.numpy() for tensor in outputs))
    names = [f"output_{number}" for number in range(len(outputs))]
    request = Export(
        model, example, names, job["release"], folder / job["file"], axes, by_name=True, check=job["check"]
    )
    export = exporter(job["exporter"])
    began = time.perf_counter()
    with torch.no_grad():
        export(request)
        seconds = time.perf_counter() - began
        return {"seconds": seconds, "torch_ms": _least_ms(model, example)}


def read_examples(folder: Path, names: Sequence[str]) -> tuple[list[Arrays], list[Arrays]]:
    """Return inputs in the order of these names, and PyTorch's outputs. Raises KeyError for an unknown input."""
    inputs, expected = [], []
    for path in sorted(folder.glob("inputs_*.npz")):
        with np.load(path) as arrays:
            inputs.append(tuple(arrays[name] for name in names))
        with np.load(path.with_name(path.name.replace("inputs", "outputs"))) as arrays:
            expected.append(tuple(arrays[name] for name in arrays.files))
    return inputs, expected


def larger(model: torch.nn.Module, example: Inputs, axes: Axes) -> Inputs:
    """Return an example with one element more along the axes of each symbol for which the model still runs."""
    sizes = {symbol: example[name].shape[axis] for name, of in axes.items() for axis, symbol in of.items()}
    for symbol, size in sizes.items():
        more = in_rows(example, axes, [symbol], size + 1)
        with contextlib.suppress(RuntimeError, ValueError, IndexError, AssertionError):
            _run(model, more)
            example = more
    return example


def _run(model: torch.nn.Module, example: Inputs) -> list[torch.Tensor]:
    """Return the tensors that a model returns for an example."""
    with torch.no_grad():
        return tensors_of(model(**_copies(example)))


def _least_ms(model: torch.nn.Module, example: dict[str, Any]) -> float:
    """Return the milliseconds of CPU of PyTorch's fastest run, on one thread."""
    least, total_watch = float("inf"), Stopwatch()
    while total_watch.wall < TIMED_SECONDS:
        watch = Stopwatch()
        model(**_copies(example))
        least = min(least, watch.cpu)
    return 1e3 * least


def _copies(example: Mapping[str, Any]) -> dict[str, Any]:
    """Return an example with copies of its tensors; a number is a constant of the archive."""
    return {name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in example.items()}
