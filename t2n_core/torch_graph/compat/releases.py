"""The releases of PyTorch that the tests passed with. Does not import torch."""

from __future__ import annotations

import functools
import warnings
from typing import Final

from packaging.version import Version

from t2n_core.errors import UntestedTorchWarning

TESTED: Final = ("2.13.0", "2.14.1", "2.15.0")
"""Releases with which the unit, plugin and contract tests passed; `pyproject.toml` declares their range."""


def untested_note(installed: str) -> str:
    """Return a sentence about a PyTorch that is newer than the tested ones; an empty string for any other.

    Patch releases of a tested minor release count as tested.
    """
    newest = max(map(Version, TESTED))
    if Version(installed).release[:2] <= newest.release[:2]:
        return ""
    return f"torch {installed} is newer than {newest}, the newest release that this version was tested with"


@functools.cache
def warn_if_untested(installed: str) -> None:
    """Warn once in a process if the installed PyTorch is newer than the tested ones."""
    note = untested_note(installed)
    if note:
        warnings.warn(note, UntestedTorchWarning, stacklevel=3)
