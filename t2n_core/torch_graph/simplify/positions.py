"""Prove that an index counts the positions of the axis that it reads, so that it moves elements and picks none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch

from t2n_core.nnef.sizes.dims import Dim, as_dim, same
from t2n_core.torch_graph.graph.ir import TensorVariable
from t2n_core.torch_graph.simplify.open_masks import ZERO, Line, Shown

_NONE: Final = 0
"""No axis: those are counted from the end."""


def counted_axes(indices: Sequence[TensorVariable], sizes: Sequence[Dim]) -> list[int | None] | None:
    """Return for each index the axis along which it counts 0, 1, … up to the size that it reads, counted from the end.

    The indices broadcast, as in `x[i, j]`. An index 0 of a size 1 gets None. Return None unless each index counts along
    a separate axis, so that the result has the elements of `x` in the order of these axes.
    """
    axes = [_counted_axis(index, size) for index, size in zip(indices, sizes, strict=True)]
    non_null_axes = [axis for axis in axes if axis is not None]
    return None if _NONE in non_null_axes or len(non_null_axes) > len(set(non_null_axes)) else axes


def _counted_axis(index: TensorVariable, size: Dim) -> int | None:
    """Return the axis, counted from the end, along which element i is i, where all other axes have one element.

    Return None for the index 0 of a size 1, and `_NONE` for any other index.
    """
    if index.dtype.is_floating_point or index.dtype in (torch.bool, torch.uint8):
        return _NONE
    long = [axis for axis, extent in enumerate(index.shape) if not same(extent, 1)]
    if not long and same(size, 1):
        return None if index.data is not None and not index.data.any() else _NONE
    if len(long) != 1 or not same(index.shape[long[0]], size):
        return _NONE
    (axis,) = long
    if index.data is not None:
        is_counted = torch.equal(index.data.flatten(), torch.arange(index.data.numel(), dtype=index.dtype))
    else:
        position = tuple(Line(0, 1) if at == axis else ZERO for at in range(index.rank))
        is_counted = Shown(as_dim(size - 1)).number(index, position) == Line(0, 1)
    return axis - index.rank if is_counted else _NONE
