"""Packages that only an extra of this distribution brings, and the error for one that is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from t2n_core.errors import T2NError

EXTRAS: Final = {
    "torch": "torch",
    "sympy": "torch",
    "mpmath": "torch",
    "nnef": "khronos",
    "nnef_tools": "khronos",
    "distributed": "dask",
    "fsspec": "dask",
    "duckdb": "history",
    "transformers": "llm",
}
"""Imported name -> the extra that brings its distribution."""


class MissingPackageError(T2NError, ImportError):
    """A package of an extra is needed and not installed; the message holds the command that installs it."""


@contextmanager
def importing(user: str) -> Iterator[None]:
    """While active, a package of EXTRAS that is not installed raises MissingPackageError.

    `user` is what needs the package: an option, a command or a name of the API.
    """
    try:
        yield
    except ModuleNotFoundError as absent:
        package = (absent.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        raise MissingPackageError(f"{user} needs {package}: {install_command(package)}") from absent


def install_command(package: str) -> str:
    """Return the command that installs a package of EXTRAS."""
    return f"pip install 'pytest-t2n[{EXTRAS[package]}]'"


__all__ = ["EXTRAS", "MissingPackageError", "importing", "install_command"]
