"""Views by strides of tensors that lie in memory as their shape says."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from t2n_core.torch_graph.simplify.decompositions import Refusal, decomposition


def positions(self: Tensor, size: Sequence[int], stride: Sequence[int], offset: int | None) -> Tensor:
    """Return the numbers of the elements in the flattened tensor. Raises Refusal where they are not all in it."""
    if not all(isinstance(n, int) for n in stride):
        raise Refusal("a view by strides that depend on a dynamic size has no form")
    if not self.is_contiguous() or self.storage_offset() != 0:
        raise Refusal("a view by strides reads the memory behind a tensor that is a view itself")
    found = torch.tensor(offset or 0)
    for count, step in zip(size, stride, strict=True):
        found = found.unsqueeze(-1) + torch.arange(count) * step
    last = (offset or 0) + sum((count - 1) * step for count, step in zip(size, stride, strict=True))
    if isinstance(last, int) and isinstance(self.numel(), int) and last >= self.numel():
        raise Refusal("a view by strides reads beyond its tensor")
    return found.reshape(-1)


@decomposition("aten::as_strided", "aten::as_strided_copy")
def as_strided(self: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    return self.reshape(-1).index_select(0, positions(self, size, stride, storage_offset)).reshape(list(size))


@decomposition("aten::as_strided_scatter")
def as_strided_scatter(
    self: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    places = positions(self, size, stride, storage_offset)
    return self.reshape(-1).scatter(0, places, src.reshape(-1)).reshape(self.shape)
