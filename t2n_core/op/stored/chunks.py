"""Weights in pieces, so that computing with them takes little memory."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

AT_A_TIME = 1 << 20
"""Elements of a piece."""
LEAST = 64
"""Least elements of a tensor with another storage format: below, the header of its file is larger."""


def pieces(tensor: torch.Tensor) -> Iterator[tuple[slice, torch.Tensor]]:
    """Yield slices of axis 0, each with its part of the tensor."""
    size = max(1, AT_A_TIME // max(1, math.prod(tensor.shape[1:])))
    for start in range(0, len(tensor), size):
        row_slice = slice(start, start + size)
        yield row_slice, tensor[row_slice].detach()
