"""The files that hold no code of a user."""

from __future__ import annotations

from pathlib import Path

import sympy
import torch

_PACKAGES = (torch.__file__, sympy.__file__, Path(__file__).parents[1])
NOT_THE_USERS = (*(f"{Path(file).parent}/" for file in _PACKAGES), "<")
"""Prefixes of the names of files of this package and of PyTorch."""
