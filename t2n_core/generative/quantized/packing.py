"""Small integers that are packed into larger ones, and blocks that share a factor."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def unpack_integers(packed: torch.Tensor, bits: int, order: Sequence[int] | None = None) -> torch.Tensor:
    """Return unsigned integers of some bits, along a new last axis; the lowest bits are the first one.

    `order` has the place of each along that axis, if it is not that of its bits.
    """
    count = 8 * packed.dtype.itemsize // bits
    wide = packed.to(torch.int64)
    parts = torch.stack([(wide >> (bits * place)) & ((1 << bits) - 1) for place in range(count)], -1)
    if order is None:
        return parts
    places = torch.empty(count, dtype=torch.int64)
    places[torch.tensor(order)] = torch.arange(count)
    return parts[..., places]


def spread(factors: torch.Tensor, shape: Sequence[int], block: Sequence[int]) -> torch.Tensor:
    """Return the factor of each element of a tensor whose last two axes are divided into blocks."""
    rows, columns = shape[-2:]
    tall = factors.repeat_interleave(block[0], -2)[..., :rows, :]
    return tall.repeat_interleave(block[1], -1)[..., :columns]
