"""Comparison of failures: what two failures of one cause have in common, independent of names, values and shapes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from t2n_core.engine.protocol import EngineReply

_PANIC: Final = re.compile(r"panicked at\s+['\"]?(?P<file>\S+?\.rs):(?P<line>\d+)")
_OLD_PANIC: Final = re.compile(r"panicked at '.*', (?P<file>\S+?\.rs):(?P<line>\d+)", re.DOTALL)
_MASKED: Final = re.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`|#\d+|\[[^\]]*\]|\d+(?:[.,x*]\d+)*")
_NAMES: Final = re.compile(r"(?:node|input|output|tensor|statement|fact)\s+\S+", re.IGNORECASE)
_KEPT: Final = 80
_SMALLEST_SCALE: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Failure:
    """One way to fail; equal for failures of one cause in one release."""

    status: str
    stage: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.status} at {self.stage}" + (f": {self.detail}" if self.detail else "")


def failure_of(reply: EngineReply) -> Failure:
    """Return the failure of an engine that returned no outputs."""
    if reply.status in ("timeout", "oom"):
        return Failure(reply.status, reply.stage)
    panic = _OLD_PANIC.search(reply.message) or _PANIC.search(reply.message)
    if reply.status == "crash" and panic:
        return Failure("crash", reply.stage, f"{panic['file'].rpartition('/src/')[2]}:{panic['line']}")
    lines = [line for line in reply.message.splitlines() if line.strip()] or [""]
    return Failure(reply.status, reply.stage, _NAMES.sub("_", _MASKED.sub("_", lines[-1])).strip()[:_KEPT])


def difference(want: NDArray[Any], got: NDArray[Any]) -> float:
    """Return the largest difference from the expected values, as a share of the largest of them.

    It is 0 unless all expected values are finite; NaN or infinity instead of a finite value counts as infinite.
    """
    if want.shape != got.shape:
        return float("inf")
    if want.dtype.kind == "b" or got.dtype.kind == "b":
        return float("inf") if (want.astype(np.bool_) != got.astype(np.bool_)).any() else 0.0
    expected, gotten = want.astype(np.float64).ravel(), got.astype(np.float64).ravel()
    if not expected.size or not np.isfinite(expected).all():
        return 0.0
    if not np.isfinite(gotten).all():
        return float("inf")
    scale = max(_SMALLEST_SCALE, float(np.abs(expected).max()))
    return float(np.abs(expected - gotten).max()) / scale
