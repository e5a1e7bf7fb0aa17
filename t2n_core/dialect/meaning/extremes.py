"""The smallest and the largest value of a data type, with which a maximum or a minimum begins."""

from __future__ import annotations

from typing import Any

import numpy as np


def lowest(dtype: np.dtype[Any]) -> Any:
    """Return -inf for floats, false for booleans, the lowest integer otherwise."""
    return -np.inf if dtype.kind == "f" else False if dtype.kind == "b" else np.iinfo(dtype).min


def highest(dtype: np.dtype[Any]) -> Any:
    """Return inf for floats, true for booleans, the highest integer otherwise."""
    return np.inf if dtype.kind == "f" else True if dtype.kind == "b" else np.iinfo(dtype).max
