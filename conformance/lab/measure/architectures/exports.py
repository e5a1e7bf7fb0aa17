"""Files that exporters write of architectures, kept in a folder so that each is written once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from conformance.lab.measure.peers.process import Worker

SECONDS = 240.0
"""Limit of one export."""
ENVIRONMENTS = {"torch-to-nnef": "torch-to-nnef-models", "torch-onnx": "torch-onnx-models"}
FILES = {"ours": "model.nnef.tar", "torch-to-nnef": "model.nnef.tgz", "torch-onnx": "model.onnx"}
"""Ours is uncompressed, as torch.onnx's is: most of the loading time would be gzip's."""
AXES = {"fixed": "", "free": "batch"}
"""Name of the sizes -> the axes that are dynamic, as a job of `peers.architectures` names them."""
_ANSWER, _ARRAYS = "answer.json", "arrays.npz"


def make_workers(exporters: Sequence[str], environments: Path) -> dict[str, Worker]:
    """Return the process of each exporter by its name; environments are made where they are missing."""
    return {
        name: Worker.in_environment(name, environments, ENVIRONMENTS[name]) if name in ENVIRONMENTS else Worker(name)
        for name in exporters
    }


class Exports:
    """What each exporter writes of one architecture, for each release that it writes another file for."""

    def __init__(self, name: str, sizes: str, workers: Mapping[str, Worker], folder: Path) -> None:
        self.name, self.sizes, self.workers, self.folder = name, sizes, workers, folder / f"{name}-{sizes}"

    @property
    def arrays(self) -> Path:
        """The inputs and PyTorch's outputs of the first example, as `time_in_process` reads them."""
        return self.folder / _ARRAYS

    def of(self, exporter: str, release: str) -> tuple[Path, dict[str, Any]]:
        """Return the file and the answer of the exporter's process: seconds, or an error."""
        folder = self.folder / (exporter if exporter == "torch-onnx" else f"{exporter}-{release}")
        archive = folder / FILES[exporter]
        if not (folder / _ANSWER).exists():
            folder.mkdir(parents=True, exist_ok=True)
            job = {"name": self.name, "release": release, "folder": str(folder), "file": archive.name}
            answer = self.workers[exporter].ask("architectures", SECONDS, **job, axes=AXES[self.sizes], check=False)
            if "error" not in answer and not archive.exists():
                answer = {"error": "no archive was written"}
            self._keep_arrays(folder)
            (folder / _ANSWER).write_text(json.dumps(answer), "utf-8")
        answer = json.loads((folder / _ANSWER).read_text("utf-8"))
        return archive, answer

    def _keep_arrays(self, folder: Path) -> None:
        """Keep the first example of an export for the architecture; delete examples next to an archive."""
        examples = sorted(folder.glob("*puts_*.npz"))
        if not self.arrays.exists() and (folder / "outputs_0.npz").exists():
            save_arrays(folder, self.arrays)
        for path in examples:
            path.unlink()


def save_arrays(folder: Path, path: Path) -> None:
    """Save the first example as `time_in_process` reads it."""
    with np.load(folder / "inputs_0.npz") as inputs, np.load(folder / "outputs_0.npz") as outputs:
        input_arrays = {f"input{i}": inputs[key] for i, key in enumerate(inputs.files)}
        np.savez(path, **input_arrays, **{f"output{i}": outputs[key] for i, key in enumerate(outputs.files)})
