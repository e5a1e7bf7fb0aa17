"""Measure two other ways from PyTorch to tract, each in a separate environment.

    python -m conformance.lab.measure.peers torch-to-nnef --json peer.json  # first 2 samples per operator, float32
    python -m conformance.lab.measure.peers torch-onnx --workers 2 --complete

The environment is made under `.tox/peers` with pip, once. Samples, comparison and definitions are those of the suite
`aten`; values are checked by our own engines and comparison, not by what a peer claims.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from conformance.checks.aten_outcomes import read_lines
from conformance.lab.command import command_parser
from conformance.lab.machine import ROOT
from conformance.lab.measure.coverage import report
from conformance.lab.measure.peers.environments import ENGINE, PEERS, make_environment
from conformance.lab.processes import ENVIRONMENT


def measure(peer: str, python: Path, outcomes: list[Path], most: int) -> None:
    """Measure in one process per file of outcomes, each with its share of the operators."""
    running = []
    for index, path in enumerate(outcomes):
        share = f"{index}/{len(outcomes)}"
        command = [str(python), "-W", "ignore", "-m", "conformance.lab.measure.peers.operators"]
        command += [peer, ENGINE, share, str(most), str(path)]
        running.append(subprocess.Popen(command, cwd=ROOT, env={**os.environ, **ENVIRONMENT}))
    if any(process.wait() for process in running):
        raise SystemExit("a worker ended early: the figures would not be complete")


def main() -> None:
    parser = command_parser("conformance.lab.measure.peers", __doc__)
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
