"""Differences of neighbours, the most frequent value, histograms."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from t2n_core.torch_graph.simplify.decompositions import Refusal, decomposition

_PAIRS = 1 << 20
"""Comparisons of every element with every other one, or with every bin; more would take too much memory."""
_BINS = 1 << 10
"""Bins of a histogram over elements whose number varies."""


@decomposition("aten::diff")
def diff(
    self: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    if n == 0:  # PyTorch then leaves out what would stand before and behind
        return self.clone()
    parts = [part for part in (prepend, self, append) if part is not None]
    x = torch.cat(parts, dim) if len(parts) > 1 else self
    for _ in range(n):
        size = x.shape[dim]
        if isinstance(size, int) and size <= 1:
            raise Refusal("a difference without elements has no form in a graph")
        before = (slice(None),) * (dim % x.ndim)  # slices, as `narrow` fails where the axis is empty
        later, earlier = x[(*before, slice(1, None))], x[(*before, slice(None, -1))]
        x = later ^ earlier if x.dtype == torch.bool else later - earlier
    return x


@decomposition("aten::mode")
def mode(self: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Return the smallest of the most frequent values, and where it stands last."""
    if self.ndim == 0:
        return self.clone(), torch.zeros((), dtype=torch.int64)
    if self.dtype == torch.bool:
        value, index = mode(self.to(torch.uint8), dim, keepdim)
        return value.to(torch.bool), index
    x = self.movedim(dim, -1)
    size = x.shape[-1]
    known = isinstance(size, int) and isinstance(x.numel(), int)
    if known and x.numel() * size > _PAIRS:
        raise Refusal("the most frequent value compares every two elements: the axis is too long")
    counts = (x.unsqueeze(-1) == x.unsqueeze(-2)).to(torch.int64).sum(-1)
    limit = math.inf if x.is_floating_point() else torch.iinfo(x.dtype).max
    value = torch.where(counts == counts.amax(-1, keepdim=True), x, limit).amin(-1, keepdim=True)
    index = torch.where(x == value, torch.arange(size), -1).amax(-1, keepdim=True)
    results = value.movedim(-1, dim), index.movedim(-1, dim)
    return results if keepdim else (results[0].squeeze(dim), results[1].squeeze(dim))


@decomposition("aten::histc")
def histc(self: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    x = self.reshape(-1)
    if bins > _BINS or (isinstance(x.shape[0], int) and x.shape[0] * bins > _PAIRS):
        raise Refusal("a histogram compares every element with every bin, and there are too many")
    low: Tensor | float = min
    high: Tensor | float = max
    if min == max:
        low, high = x.amin(), x.amax()
        same = low == high
        low, high = torch.where(same, low - 1, low), torch.where(same, high + 1, high)
    place = ((x - low) * (bins / (high - low))).floor()
    place = torch.where(x == high, bins - 1, place)
    place = torch.where((x >= low) & (x <= high), place, -1)
    return (place.unsqueeze(0) == torch.arange(bins, dtype=x.dtype).unsqueeze(1)).to(x.dtype).sum(1)
