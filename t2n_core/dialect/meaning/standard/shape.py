"""Operations that change shapes, or join or split tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t2n_core.dialect.registry import defines


@defines("reshape")
def reshape(input: NDArray[Any], shape: list[int], axis_start: int = 0, axis_count: int = -1) -> NDArray[Any]:
    """Return the input with some of its axes replaced by others, its elements in the same order.

    Shapes: `axis_count` axes from `axis_start` on (-1: all of them) become `shape`. In it 0 at a place is the extent of
    the input at that place of the replaced axes, and one -1 is what is left over.
    Domain: the number of elements stays.
    Special values: -1 beside an empty axis is 0 / 0: not defined, raises ValueError.
    Source: NNEF 1.0.5, Tensor Shape Operations (reshape).
    """
    stop = input.ndim if axis_count == -1 else axis_start + axis_count
    replaced = input.shape[axis_start:stop]
    extents = [replaced[index] if size == 0 else size for index, size in enumerate(shape)]
    if -1 in extents:
        known_size = math.prod(size for size in extents if size != -1)
        if not known_size or math.prod(replaced) % known_size:
            raise ValueError(f"{list(replaced)} cannot become {list(shape)}")
        extents[extents.index(-1)] = math.prod(replaced) // known_size
    if math.prod(extents) != math.prod(replaced):
        raise ValueError(f"{list(replaced)} cannot become {list(shape)}")
    return input.reshape((*input.shape[:axis_start], *extents, *input.shape[stop:]))


@defines("transpose")
def transpose(input: NDArray[Any], axes: list[int]) -> NDArray[Any]:
    """Return the input with its axes in another order: axis i of the result is axis `axes[i]` of the input.

    Shapes: axes beyond the list's length stay in place.
    Domain: the list is a permutation of 0 to its length - 1.
    Source: NNEF 1.0.5, Tensor Shape Operations (transpose).
    """
    return np.transpose(input, (*axes, *range(len(axes), input.ndim)))


@defines("squeeze")
def squeeze(input: NDArray[Any], axes: list[int]) -> NDArray[Any]:
    """Return the input without these axes, each of extent 1.

    Domain: raises ValueError for an axis of another extent.
    Source: NNEF 1.0.5, Tensor Shape Operations (squeeze).
    """
    return np.squeeze(input, tuple(axes))


@defines("unsqueeze")
def unsqueeze(input: NDArray[Any], axes: list[int]) -> NDArray[Any]:
    """Return the input with axes of extent 1 inserted, at these places of the result.

    Source: NNEF 1.0.5, Tensor Shape Operations (unsqueeze).
    """
    return np.expand_dims(input, tuple(axes))


@defines("tile")
def tile(input: NDArray[Any], repeats: list[int]) -> NDArray[Any]:
    """Return the input repeated along each axis.

    Shapes: extent i times `repeats[i]`; there is one for each axis.
    Special values: 0 repeats give an empty axis.
    Source: NNEF 1.0.5, Tensor Shape Operations (tile).
    """
    if len(repeats) != input.ndim:
        raise ValueError(f"{len(repeats)} repeats for {input.ndim} axes")
    return np.tile(input, tuple(repeats))


@defines("concat")
def concat(values: Sequence[NDArray[Any]], axis: int) -> NDArray[Any]:
    """Return the concatenation of a list of tensors along an existing axis.

    Shapes: equal but for that axis. The data type is the first tensor's.
    Source: NNEF 1.0.5, Tensor Shape Operations (concat); tract nnef/src/ops/nnef/deser.rs for mixed data types.
    """
    return np.concatenate([value.astype(values[0].dtype, copy=False) for value in values], axis)


@defines("split")
def split(value: NDArray[Any], axis: int, ratios: list[int]) -> tuple[NDArray[Any], ...]:
    """Return the tensor cut along an axis into pieces with sizes in these ratios.

    Domain: the extent is a multiple of the sum of the ratios; raises ValueError.
    Source: NNEF 1.0.5, Tensor Shape Operations (split).
    """
    total = sum(ratios)
    if value.shape[axis] % total:
        raise ValueError(f"an extent of {value.shape[axis]} cannot be split in the ratios {ratios}")
    unit = value.shape[axis] // total
    return tuple(np.split(value, np.cumsum(ratios[:-1]) * unit, axis))


@defines("stack")
def stack(values: Sequence[NDArray[Any]], axis: int) -> NDArray[Any]:
    """Return the tensors of a list as slices along a new axis.

    Shapes: all equal; the new axis is at place `axis` of the result.
    Source: NNEF 1.0.5, Tensor Shape Operations (stack).
    """
    return np.stack([value.astype(values[0].dtype, copy=False) for value in values], axis)


@defines("unstack")
def unstack(value: NDArray[Any], axis: int) -> tuple[NDArray[Any], ...]:
    """Return the slices along an axis, without that axis.

    Source: NNEF 1.0.5, Tensor Shape Operations (unstack).
    """
    return tuple(np.moveaxis(value, axis, 0))


@defines("copy_n")
def copy_n(x: NDArray[Any], times: int) -> tuple[NDArray[Any], ...]:
    """Return the tensor several times.

    Source: NNEF 1.0.5, Miscellaneous Operations (copy_n).
    """
    return (np.asarray(x),) * times


@defines("constant", result="computed")
def constant(shape: list[int], value: list[Any]) -> NDArray[Any]:
    """Return a tensor with these elements in row-major order, or with one element everywhere.

    Domain: as many elements as the shape has, or one; raises ValueError.
    Source: NNEF 1.0.5, Introducing Operations (constant).
    """
    items = np.asarray(value)
    return np.full(shape, items.reshape(())) if items.size == 1 else items.reshape(shape)
