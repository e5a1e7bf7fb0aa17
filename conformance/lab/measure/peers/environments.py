"""Environments of other exporters, made with pip below one folder, once."""

from __future__ import annotations

import tomllib
from pathlib import Path

from conformance.cases.models import LIBRARIES
from conformance.lab.machine import ROOT, VERSIONS
from t2n_core.exporters.environment import install, installed_python

ENGINE = VERSIONS[-1]
PEERS = {
    "torch-to-nnef": ["torch-to-nnef==0.24.12"],
    "torch-onnx": ["onnx", "onnxscript", f"tract=={ENGINE}"],
}
"""Name -> what is installed besides torch."""
ENVIRONMENTS = {
    **PEERS,
    "torch-to-nnef-models": [*PEERS["torch-to-nnef"], *LIBRARIES],
    "torch-onnx-models": [*PEERS["torch-onnx"], *LIBRARIES],
    "torch-to-nnef-llm": ["torch-to-nnef-llm==0.24.12", *PEERS["torch-to-nnef"], "transformers", "safetensors"],
}
"""Environments of other benchmarks too."""


def make_environment(peer: str, folder: Path) -> Path:
    """Return the interpreter of an environment, which is made with the torch of `constraints.txt` if it is missing."""
    home = folder / peer
    if (python := installed_python(home)) is not None:
        return python
    # the suite and our engines run there too; not installed, so that it is this checkout that runs
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    return install(home, ["torch", *ENVIRONMENTS[peer], *ours, "expecttest"], "-c", str(ROOT / "constraints.txt"))
