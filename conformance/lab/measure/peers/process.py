"""Processes of exporters, each in its environment, which answer jobs within a budget of time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from conformance.lab.machine import ROOT
from conformance.lab.measure.peers.environments import make_environment
from conformance.lab.processes import ENVIRONMENT

NAME = "torch-to-nnef 0.24.12"
WORKER = "conformance.lab.measure.peers.worker"


class Worker:
    """The process of an exporter, which answers jobs; after a job beyond its budget it is restarted."""

    def __init__(self, exporter: str, python: Path | str = sys.executable) -> None:
        self.exporter, self.python = exporter, python
        self.process: subprocess.Popen[str] | None = None

    @classmethod
    def in_environment(cls, exporter: str, folder: Path, environment: str | None = None) -> Worker:
        """Return the worker of an exporter in its environment, which is made under `folder` if it is not there."""
        return cls(exporter, make_environment(environment or exporter, folder))

    def ask(self, kind: str, budget: float, **job: Any) -> dict[str, Any]:
        """Return the answer, or {"error": …} when it takes longer than `budget` seconds."""
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(
                [str(self.python), "-m", WORKER],
                cwd=ROOT, env={**os.environ, **ENVIRONMENT}, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        end = threading.Timer(budget, self.process.kill)
        end.start()
        try:
            self.process.stdin.write(json.dumps({"kind": kind, "exporter": self.exporter, **job}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            end.cancel()
        if not line:  # until it is gone it would seem to be there for the next job
            self.close()
        answer: dict[str, Any] = json.loads(line) if line else {"error": f"no answer within {budget:.0f} s"}
        return answer

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
