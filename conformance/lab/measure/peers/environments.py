"""Environments of other exporters, made with pip below one folder, once."""

from __future__ import annotations

import os
import subprocess
import tomllib
import venv
from pathlib import Path

from conformance.lab.machine import ROOT, VERSIONS

ENGINE = VERSIONS[-1]
PEERS = {
    "torch-to-nnef": ["torch-to-nnef==0.24.12"],
    "torch-onnx": ["onnx", "onnxscript", f"tract=={ENGINE}"],
}
"""Name -> what is installed beside torch."""
MODEL_LIBRARIES = ("torchvision", "timm", "transformers", "torchaudio")
ENVIRONMENTS = {
    **PEERS,
    "torch-to-nnef-models": [*PEERS["torch-to-nnef"], *MODEL_LIBRARIES],
    "torch-onnx-models": [*PEERS["torch-onnx"], *MODEL_LIBRARIES],
    "torch-to-nnef-llm": ["torch-to-nnef-llm==0.24.12", *PEERS["torch-to-nnef"], "transformers", "safetensors"],
}
"""Those of other benchmarks too."""


def make_environment(peer: str, folder: Path) -> Path:
    """Its Python; made with the torch of `constraints.txt` if it is not there."""
    home = folder / peer
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not (home / "ready").exists():
        venv.create(home, with_pip=True, clear=True)
        # the suite and our engines run there too; not installed, so that it is this checkout that runs
        ours = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
        wanted = ["torch", *ENVIRONMENTS[peer], *ours, "expecttest"]
        pip = [str(python), "-m", "pip", "install", "--quiet", "-c", str(ROOT / "constraints.txt"), *wanted]
        subprocess.run(pip, check=True)
        (home / "ready").write_text("\n".join(wanted) + "\n", encoding="utf-8")
    return python
