"""Scales of weights that are stored as integers: values for the `scales` of `StoredAs("int8")` and `StoredAs("q4_0")`.

Each is a function of rows [n, k], which get one scale each, and of the bounds of the integers. You can pass your own;
it knows the weight if a function chooses the storage formats:

    weights=lambda name, weight: StoredAs("int8", scales=lambda rows, low, high: mine[name])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from t2n_core.errors import InputError
from t2n_core.nnef.options.weight_choice import Scales

if TYPE_CHECKING:
    from torch import Tensor


def largest(rows: Tensor, lowest: int, highest: int) -> Tensor:
    """Return the scales that map the element of largest magnitude to a bound: the lower one, if that is farther."""
    import torch

    farthest = rows.gather(1, rows.abs().argmax(1, keepdim=True))[:, 0]
    return farthest / lowest if -lowest > highest else torch.abs(farthest) / highest


def percentile(share: float) -> Scales:
    """Return scales for which this share of each row is within the bounds; what is beyond them is clipped.

    Raises InputError for a share that is not above 0 and at most 1.
    """
    if not 0 < share <= 1:
        raise InputError(f"percentile({share}): a share is above 0 and at most 1")

    def scales(rows: Tensor, lowest: int, highest: int) -> Tensor:
        import torch

        return torch.quantile(rows.abs(), share, dim=1) / highest

    return scales


def least_error(rows: Tensor, lowest: int, highest: int) -> Tensor:
    """Return the scales with the least squared error of each row, of 40 between 0.4 and 1 times `largest`."""
    import torch

    start = largest(rows, lowest, highest)
    best, least = start, torch.full_like(start, torch.inf)
    for step in range(40):
        scale = start * (1 - 0.6 * step / 39)
        safe = torch.where(scale == 0, 1.0, scale)[:, None]
        error = (torch.round(rows / safe).clamp(lowest, highest) * safe - rows).square().sum(1)
        best, least = torch.where(error < least, scale, best), torch.minimum(error, least)
    return best
