"""The same measurement for two other ways from PyTorch to tract, each in a separate environment.

    python -m conformance.peers torch-to-nnef --json peer.json        # first 2 samples per operator, float32
    python -m conformance.peers torch-onnx --workers 2 --complete

The environment is made under `.tox/peers` with pip, once. Samples, comparison and definitions are those of the suite
`aten`; values are checked by our own engines and comparison, not by what a peer claims.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

from conformance.checks.aten_outcomes import read_lines
from conformance.coverage import report
from conformance.lab.command import command_parser
from conformance.lab.machine import ROOT
from conformance.lab.processes import ENVIRONMENT

ENGINE = "0.23.9"
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


def measure(peer: str, python: Path, outcomes: list[Path], most: int) -> None:
    """Measure in one process per file of outcomes, each with its share of the operators."""
    running = []
    for index, path in enumerate(outcomes):
        share = f"{index}/{len(outcomes)}"
        command = [str(python), "-W", "ignore", "-m", "conformance.peer_worker"]
        command += [peer, ENGINE, share, str(most), str(path)]
        running.append(subprocess.Popen(command, cwd=ROOT, env={**os.environ, **ENVIRONMENT}))
    if any(process.wait() for process in running):
        raise SystemExit("a worker ended early: the figures would not be complete")


def main() -> None:
    parser = command_parser("conformance.peers", __doc__)
    parser.add_argument("peer", choices=list(PEERS))
    parser.add_argument("--complete", action="store_true", help="every usable float32 sample")
    parser.add_argument("--samples", type=int, default=2, help="per operator, unless --complete")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=ROOT / ".tox" / "peers", help="where environments are made")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    arguments = parser.parse_args()
    folder = arguments.folder.absolute()
    python = make_environment(arguments.peer, folder)
    outcomes = [folder / f"{arguments.peer}-{i}.jsonl" for i in range(arguments.workers)]
    measure(arguments.peer, python, outcomes, 0 if arguments.complete else arguments.samples)
    report([line for path in outcomes for line in read_lines(path)], arguments.json)


if __name__ == "__main__":
    sys.exit(main())
