"""The end of a process with its parent, even if it is stopped and notices nothing."""

from __future__ import annotations

import ctypes
import functools
import signal
import sys
from typing import Any, Final

_PR_SET_PDEATHSIG: Final = 1


def end_with_parent() -> None:
    """Let Linux kill this process at the end of the thread that started it; do nothing elsewhere."""
    if control := death_signal():
        control(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


@functools.cache
def death_signal() -> Any:
    """Return Linux's function that names the signal for the end of a parent; None elsewhere.

    Call it before a fork: in a child, each page that this touches would be copied.
    """
    return ctypes.CDLL(None).prctl if sys.platform == "linux" else None
