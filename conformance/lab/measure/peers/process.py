"""Talks to the processes of exporters, with a budget of time."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

from conformance.lab.machine import ROOT
from conformance.lab.measure.peers.environments import make_environment
from conformance.lab.processes import ENVIRONMENT

NAME = "torch-to-nnef 0.24.12"
MODULES = {
    "torch-to-nnef": "conformance.lab.measure.peers.torch_to_nnef",
    "torch-onnx": "conformance.lab.measure.peers.torch_onnx",
}
"""What runs in each peer's environment."""


class Worker:
    """One process of a module that answers jobs, in any environment; after a job beyond its budget it is restarted."""

    def __init__(self, python: Path, module: str) -> None:
        self.python, self.module = python, module
        self.process: subprocess.Popen[str] | None = None

    def ask(self, job: dict[str, Any], budget: float) -> dict[str, Any]:
        """Return the answer, or {"error": …} when it takes longer than `budget` seconds."""
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(
                [str(self.python), "-m", self.module],
                cwd=ROOT, env={**os.environ, **ENVIRONMENT}, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        end = threading.Timer(budget, self.process.kill)
        end.start()
        try:
            self.process.stdin.write(json.dumps(job) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            end.cancel()
        if not line:  # until it is gone it would seem to be there for the next job
            self.close()
        found: dict[str, Any] = json.loads(line) if line else {"error": f"no answer within {budget:.0f} s"}
        return found

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


class Peer(Worker):
    """One process in a peer's environment."""

    def __init__(self, folder: Path, name: str = "torch-to-nnef") -> None:
        """Makes the environment under `folder` if it is not there."""
        super().__init__(make_environment(name, folder), MODULES[name])
