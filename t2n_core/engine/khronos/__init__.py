"""The Khronos tools as engines for strict NNEF."""

from __future__ import annotations

from importlib.util import find_spec

from t2n_core.extras import install_command

_PACKAGES = ("nnef", "nnef_tools", "torch")
"""Packages that the processes of these engines import; no other part of an engine needs them."""


def why_no_khronos() -> str:
    """Return why the Khronos tools cannot run here, and what to do about it; '' if they can."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if not missing:
        return ""
    return f"the Khronos tools need {', '.join(missing)}: {install_command('nnef')}"


__all__ = ["why_no_khronos"]
