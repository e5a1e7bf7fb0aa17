"""Processors for which tract has no kernels for products of float16."""

from __future__ import annotations

import platform
from typing import Final

_X86: Final = frozenset({"x86_64", "amd64"})


def lacks_kernels() -> bool:
    """Return whether tract lacks kernels for products of float16 on this machine, and runs a scalar loop instead."""
    return platform.machine().lower() in _X86
