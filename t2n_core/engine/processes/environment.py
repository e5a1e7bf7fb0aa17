"""The environment of engines' processes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import MappingProxyType

_OF_TRACT = "TRACT_"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""Variables that set thread counts."""
ENGINE_THREADS = MappingProxyType(dict.fromkeys(THREADS, "1"))
"""Thread counts in an engine's process."""
_RUN_MODULE = """
import importlib.util, os, runpy, sys
os.environ.pop("PYTHONPATH", None)
sys.path += sys.argv[2:]
spec = importlib.util.spec_from_file_location("t2n_core", os.path.join(sys.argv[2], "t2n_core", "__init__.py"))
sys.modules["t2n_core"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["t2n_core"])
runpy.run_module(sys.argv[1], run_name="__main__", alter_sys=True)
"""
"""Imports the caller's copy of this package, whatever the environment has."""


def single_threaded_environment() -> dict[str, str]:
    """Return the environment of a process with one thread per engine, tract's own kernels and short panics.

    Variables of tract choose kernels. None is inherited, so that an engine's name determines its kernels.
    """
    outside = {name: value for name, value in os.environ.items() if not name.startswith(_OF_TRACT)}
    environment = {**outside, **ENGINE_THREADS, "RUST_BACKTRACE": "0"}
    for name in ("RUST_LIB_BACKTRACE", "PYTHONFAULTHANDLER"):
        environment.pop(name, None)  # they would write to the engine's stderr
    return environment


def worker_environment() -> dict[str, str]:
    """Return a single-threaded environment in which this package can be imported from its location."""
    environment = single_threaded_environment()
    home = str(Path(__file__).resolve().parents[3])
    others = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    environment["PYTHONPATH"] = os.pathsep.join([home, *others])
    return environment


def command_in(python: Path, module: str) -> list[str]:
    """Return the command that runs a module of this package in another environment of the same Python.

    What that environment does not have comes from the search path of this process.
    """
    home = str(Path(__file__).resolve().parents[3])
    others = [path for path in sys.path if path and Path(path).is_dir()]
    return [str(python), "-I", "-c", _RUN_MODULE, module, *dict.fromkeys([home, *others])]
