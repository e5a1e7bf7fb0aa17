"""Noise of the size of rounding errors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Noise(NamedTuple):
    """Noise for the weights of an archive."""

    ulps: int
    seed: int


def with_noise(array: Any, ulps: int, random: np.random.Generator) -> Any:
    """Return an array of float32 with each element moved by `ulps` units in the last place; others as they are."""
    if not isinstance(array, np.ndarray) or array.dtype != np.float32:
        return array
    signs = np.where(random.random(array.shape) < 0.5, -1, 1)
    return (array * (1 + signs * ulps * float(np.finfo(np.float32).eps))).astype(np.float32)
