"""Differences of neighbours, the most frequent value, histograms, indices of nonzero elements, sums of segments."""

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
    if n == 0:  # PyTorch then ignores `prepend` and `append`
        return self.clone()
    parts = [part for part in (prepend, self, append) if part is not None]
    x = torch.cat(parts, dim) if len(parts) > 1 else self
    for _ in range(n):
        size = x.shape[dim]
        if isinstance(size, int) and size <= 1:
            raise Refusal("a difference without elements cannot be expressed in a graph")
        before = (slice(None),) * (dim % x.ndim)  # slices, as `narrow` fails where the axis is empty
        later, earlier = x[(*before, slice(1, None))], x[(*before, slice(None, -1))]
        x = later ^ earlier if x.dtype == torch.bool else later - earlier
    return x


@decomposition("aten::mode")
def mode(self: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Return the smallest of the most frequent values, and its last index."""
    if self.ndim == 0:
        return self.clone(), torch.zeros((), dtype=torch.int64)
    if self.dtype == torch.bool:
        value, index = mode(self.to(torch.uint8), dim, keepdim)
        return value.to(torch.bool), index
    x = self.movedim(dim, -1)
    size = x.shape[-1]
    is_static = isinstance(size, int) and isinstance(x.numel(), int)
    if is_static and x.numel() * size > _PAIRS:
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
    bin_index = ((x - low) * (bins / (high - low))).floor()
    bin_index = torch.where(x == high, bins - 1, bin_index)
    bin_index = torch.where((x >= low) & (x <= high), bin_index, -1)
    return (bin_index.unsqueeze(0) == torch.arange(bins, dtype=x.dtype).unsqueeze(1)).to(x.dtype).sum(1)


@decomposition("aten::nonzero_static")
def nonzero_static(self: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """Return the indices of the first `size` nonzero elements, [size, rank], in row-major order."""
    mask = (self != 0).reshape(-1)
    count = mask.shape[0]
    if isinstance(count, int) and count * size > _PAIRS:
        raise Refusal("nonzero_static compares every element with every index, and there are too many")
    order = torch.where(mask, mask.to(torch.int64).cumsum(0) - 1, -1)
    hits = order.unsqueeze(0) == torch.arange(size).unsqueeze(1)
    flat = torch.where(hits, torch.arange(count), 0).sum(1)
    places, rest = [], flat
    for extent in reversed(self.shape):
        places.append(rest % extent)
        rest = rest // extent
    indices = torch.stack(places[::-1], 1) if places else flat.new_empty((size, 0))
    return torch.where(hits.any(1, keepdim=True), indices, fill_value)


@decomposition("aten::segment_reduce")
def segment_reduce(
    data: Tensor, reduce: str, *, lengths: Tensor | None = None, indices: Tensor | None = None,
    offsets: Tensor | None = None, axis: int = 0, unsafe: bool = False, initial: float | None = None,
) -> Tensor:  # fmt: skip
    """Return sums, products, means or extremes of segments along `axis`, the last axis of lengths and offsets."""
    if lengths is not None:
        ends = lengths.cumsum(-1)
        begins = ends - lengths
    elif offsets is not None:
        begins, ends = offsets[..., :-1], offsets[..., 1:]
    else:
        raise Refusal("segment_reduce needs lengths or offsets")
    count, segments = data.shape[axis], begins.shape[-1]
    if isinstance(data.numel(), int) and isinstance(segments, int) and data.numel() * segments > _PAIRS:
        raise Refusal("segment_reduce compares every element with every segment, and there are too many")
    places = torch.arange(count)
    inside = (places >= begins.unsqueeze(-1)) & (places < ends.unsqueeze(-1))
    inside = inside.reshape(*inside.shape, *[1] * (data.ndim - axis - 1))
    empty = (ends == begins).reshape(*begins.shape, *[1] * (data.ndim - axis - 1))
    start = _NEUTRAL[reduce] if initial is None else initial
    chosen = torch.where(inside, data.unsqueeze(axis), _NEUTRAL[reduce])
    if reduce == "max":
        return chosen.amax(axis + 1).clamp(min=start)
    if reduce == "min":
        return chosen.amin(axis + 1).clamp(max=start)
    if reduce == "prod":
        return chosen.prod(axis + 1) * start
    total = chosen.sum(axis + 1) + start
    if reduce == "sum":
        return total
    size = (ends - begins).reshape(empty.shape).to(data.dtype)
    return torch.where(empty, math.nan if initial is None else initial, total / size.clamp(min=1))


_NEUTRAL = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}
