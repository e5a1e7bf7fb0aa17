"""Work in other processes: a pool with PyTorch loaded, and modules that answer a job in JSON."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, TextIO

from conformance.lab.machine import ROOT

_START_METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
ENVIRONMENT: Mapping[str, str] = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "RUST_BACKTRACE": "0"}
"""What a process of this checkout is started with, in any environment of Python."""


def process_pool(jobs: int, preload: str) -> ProcessPoolExecutor:
    """Return a pool whose processes have loaded a module, PyTorch with it, and compute on one thread each."""
    import torch

    context = multiprocessing.get_context(_START_METHOD)
    if _START_METHOD == "forkserver":
        multiprocessing.set_forkserver_preload([preload])
    return ProcessPoolExecutor(jobs, context, torch.set_num_threads, (1,))


def run_module(
    module: str, *words: object, job: object = None, python: Path | str = sys.executable, timeout: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a module of this checkout with a job in JSON as its input, and return what it printed."""
    command = [str(python), "-W", "ignore", "-m", module, *map(str, words)]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, **ENVIRONMENT}, input=json.dumps(job), text=True, capture_output=True,
        check=False, timeout=timeout,
    )  # fmt: skip


def ask_module(module: str, *words: object, job: object = None) -> Any:
    """Return the answer of a module to a job. Raises CalledProcessError, with the module's messages printed."""
    child = run_module(module, *words, job=job)
    if child.returncode:
        print(child.stderr, file=sys.stderr)
    child.check_returncode()
    return json.loads(child.stdout)


def open_answers() -> TextIO:
    """Return the file for answers; what libraries print goes to the messages from now on."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers
