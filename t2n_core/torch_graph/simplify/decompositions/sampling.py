"""Reads and writes at computed positions: sampling of images and volumes, and unpooling."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from t2n_core.torch_graph.compat.operators import operator
from t2n_core.torch_graph.compat.private import decomposition_table
from t2n_core.torch_graph.simplify.decompositions import Refusal, decomposition

_BILINEAR, _NEAREST = 0, 1
_ZEROS, _BORDER, _REFLECTION = 0, 1, 2
_EXACT = 1 << 24
"""Integers below this are exact in float32."""


@decomposition("aten::grid_sampler")
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    sampler = grid_sampler_2d if input.dim() == 4 else grid_sampler_3d
    return sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@decomposition("aten::grid_sampler_2d")
def grid_sampler_2d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Sample as PyTorch's decomposition does, which branches on the size if an image is reflected at pixel centres."""
    is_free = not all(isinstance(extent, int) for extent in input.shape[2:])
    if padding_mode == _REFLECTION and align_corners and is_free and interpolation_mode in (_BILINEAR, _NEAREST):
        beyond = (grid + 1).abs() % 4  # an image goes from -1 to 1, and its mirror image from 1 to 3
        grid, padding_mode = torch.where(beyond > 2, 4 - beyond, beyond) - 1, _BORDER
    plain: Any = decomposition_table[operator("aten::grid_sampler_2d.default")]
    samples: Tensor = plain(input, grid, interpolation_mode, padding_mode, align_corners)
    return samples


@decomposition("aten::grid_sampler_3d")
def grid_sampler_3d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Sample [n, c, d, h, w] at positions [n, d', h', w', 3] in the order (w, h, d)."""
    if interpolation_mode not in (_BILINEAR, _NEAREST):
        raise Refusal("PyTorch samples volumes only by bilinear or nearest")
    extents = input.shape[2:]
    places = [_place(grid[..., 2 - axis], extent, padding_mode, align_corners) for axis, extent in enumerate(extents)]
    if interpolation_mode == _NEAREST:
        return _read(input, [position.round() for position in places], extents)
    floors = [position.floor() for position in places]
    parts = []
    for corner in itertools.product((0, 1), repeat=3):
        at = [low + step for low, step in zip(floors, corner, strict=True)]
        near = [1 - (position - there).abs() for position, there in zip(places, at, strict=True)]
        parts.append(_read(input, at, extents) * functools.reduce(torch.mul, near).unsqueeze(1))
    return functools.reduce(torch.add, parts)


def _place(x: Tensor, extent: Any, padding_mode: int, align_corners: bool) -> Tensor:
    """Return positions in units of elements: -1 is the first element and 1 the last, or their outer edges."""
    positions: Tensor = (x + 1) / 2 * (extent - 1) if align_corners else ((x + 1) * extent - 1) / 2
    if padding_mode == _ZEROS:
        return positions
    if padding_mode != _BORDER:
        positions = _reflected(positions, extent, align_corners)
    return positions.clamp(min=0).minimum(torch.full((), extent - 1, dtype=x.dtype))


def _reflected(positions: Tensor, extent: Any, align_corners: bool) -> Tensor:
    """Return positions mirrored at the first and last element, or at their outer edges."""
    low = 0.0 if align_corners else -0.5
    span = extent - 1 if align_corners else extent
    size = torch.full((), span, dtype=positions.dtype)
    distance = (positions - low).abs()
    flips = (distance / size).floor()
    rest = distance - flips * size
    is_odd = flips - (flips / 2).floor() * 2 != 0
    return torch.where(size > 0, torch.where(is_odd, size - rest, rest) + low, 0)


def _read(input: Tensor, at: Sequence[Tensor], extents: Sequence[Any]) -> Tensor:
    """Return the elements of [n, c, d, h, w] at integer positions [n, d', h', w'], 0 outside the volume."""
    inside = [(position >= 0) & (position < extent) for position, extent in zip(at, extents, strict=True)]
    count = math.prod(extents)
    # float32 indices of so few elements are exact, and NNEF 1.0 cannot multiply integers
    dtype = torch.float32 if isinstance(count, int) and count < _EXACT else torch.int64
    depth, height, width = (torch.where(here, position, 0).to(dtype) for here, position in zip(inside, at, strict=True))
    flat = ((depth * extents[1] + height) * extents[2] + width).to(torch.int64).reshape(input.shape[0], 1, -1)
    picked = input.flatten(2).gather(2, flat.expand(-1, input.shape[1], -1))
    picked = picked.reshape(*input.shape[:2], *depth.shape[1:])
    return torch.where(functools.reduce(torch.logical_and, inside).unsqueeze(1), picked, 0)


@decomposition("aten::max_unpool2d")
def max_unpool2d(self: Tensor, indices: Tensor, output_size: Sequence[Any]) -> Tensor:
    return _unpooled(self, indices, output_size)


@decomposition("aten::max_unpool3d")
def max_unpool3d(
    self: Tensor, indices: Tensor, output_size: Sequence[Any], stride: Sequence[int], padding: Sequence[int]
) -> Tensor:
    return _unpooled(self, indices, output_size)


def _unpooled(x: Tensor, indices: Tensor, output_size: Sequence[Any]) -> Tensor:
    """Return zeros of the output's size with each element at its index in the flattened last axes."""
    rank = len(output_size)
    lead = x.shape[: x.dim() - rank]
    empty = x.new_zeros([*lead, math.prod(output_size)])
    return empty.scatter(-1, indices.flatten(-rank), x.flatten(-rank)).reshape([*lead, *output_size])
