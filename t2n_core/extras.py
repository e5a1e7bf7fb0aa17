"""Packages that only an extra of this distribution installs, and the error for a missing one."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Final

from t2n_core.errors import T2NError

EXTRAS: Final = {
    "torch": "torch",
    "sympy": "upstream",
    "mpmath": "upstream",
    "nnef": "khronos",
    "nnef_tools": "khronos",
    "distributed": "dask",
    "fsspec": "dask",
    "duckdb": "history",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "onnxscript": "exporters",
    "cloudpickle": "exporters",
    "transformers": "llm",
    "argcomplete": "completion",
}
"""Imported name -> the extra with its distribution."""


class MissingPackageError(T2NError, ImportError):
    """A package of an extra is required and not installed; the message has the command that installs it."""


@contextmanager
def importing(user: str) -> Iterator[None]:
    """While active, a package of EXTRAS that is not installed raises MissingPackageError.

    `user` is the option, command or API name that needs the package.
    """
    try:
        yield
    except ModuleNotFoundError as absent:
        package = (absent.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        raise MissingPackageError(f"{user} needs {package}: {install_command(package)}") from absent


def require(user: str, *packages: str) -> None:
    """Raise MissingPackageError if one of the packages is not installed; none of them is imported."""
    for package in packages:
        if find_spec(package) is None:
            raise MissingPackageError(f"{user} needs {package}: {install_command(package)}")


@contextmanager
def paused_gc() -> Iterator[None]:
    """Do not collect garbage while active, where many objects are created that stay: each collection traverses them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def loading_modules() -> Iterator[None]:
    """Do not collect garbage while modules are imported. Their objects then count as old, and are seldom traversed."""
    loaded = len(sys.modules)
    with paused_gc():
        try:
            yield
        finally:
            if len(sys.modules) > loaded and not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()  # to the oldest generation


def install_command(package: str) -> str:
    """Return the command that installs a package of EXTRAS."""
    return f"pip install 'pytest-t2n[{EXTRAS[package]}]'"
