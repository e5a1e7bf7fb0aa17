"""Weights in pieces, so that what is computed of them takes little memory."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

AT_A_TIME = 1 << 20
"""Elements of a piece."""
LEAST = 64
"""Elements from which on a tensor is stored in another form: below, the header of its file is larger."""


def pieces(tensor: torch.Tensor) -> Iterator[tuple[slice, torch.Tensor]]:
    """Yield some indices of axis 0 at a time, and what is there."""
    size = max(1, AT_A_TIME // max(1, math.prod(tensor.shape[1:])))
    for start in range(0, len(tensor), size):
        place = slice(start, start + size)
        yield place, tensor[place].detach()


__all__ = ["AT_A_TIME", "LEAST", "pieces"]
