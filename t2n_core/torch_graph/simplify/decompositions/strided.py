"""Views by strides, and resized views, of contiguous tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from t2n_core.torch_graph.simplify.decompositions import Refusal, decomposition


def positions(self: Tensor, size: Sequence[int], stride: Sequence[int], offset: int | None) -> Tensor:
    """Return the indices of the elements in the flattened tensor. Raises Refusal if some are outside."""
    if not all(isinstance(n, int) for n in stride):
        raise Refusal("a view by strides that depend on a dynamic size is not supported")
    if not self.is_contiguous() or self.storage_offset() != 0:
        raise Refusal("a view by strides reads the memory of a tensor that is itself a view")
    indices = torch.tensor(offset or 0)
    for count, step in zip(size, stride, strict=True):
        indices = indices.unsqueeze(-1) + torch.arange(count) * step
    last = (offset or 0) + sum((count - 1) * step for count, step in zip(size, stride, strict=True))
    if isinstance(last, int) and isinstance(self.numel(), int) and last >= self.numel():
        raise Refusal("a view by strides reads beyond its tensor")
    return indices.reshape(-1)


@decomposition("aten::as_strided", "aten::as_strided_copy")
def as_strided(self: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    return self.reshape(-1).index_select(0, positions(self, size, stride, storage_offset)).reshape(list(size))


@decomposition("aten::as_strided_scatter")
def as_strided_scatter(
    self: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    places = positions(self, size, stride, storage_offset)
    return self.reshape(-1).scatter(0, places, src.reshape(-1)).reshape(self.shape)


@decomposition("aten::resize")
def resize(self: Tensor, size: Sequence[int], memory_format: Any = None) -> Tensor:
    """Return the first elements in memory order; a growing tensor would have uninitialised elements."""
    if not self.is_contiguous() or self.storage_offset() != 0 or memory_format not in (None, torch.contiguous_format):
        raise Refusal("a resized view takes its elements in memory order")
    count, source_count = math.prod(size), self.numel()
    if not isinstance(count, int) or not isinstance(source_count, int):
        raise Refusal("whether resize_ makes a tensor larger depends on the sizes: take a slice of it")
    if count > source_count:
        raise Refusal("a tensor that grows has uninitialised elements")
    return self.reshape(-1)[:count].reshape(list(size))


@decomposition("aten::resize_as")
def resize_as(self: Tensor, the_template: Tensor, memory_format: Any = None) -> Tensor:
    return resize(self, the_template.shape, memory_format)
