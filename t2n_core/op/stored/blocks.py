"""Weights in blocks of 4 bits (Q4_0): 32 adjacent elements of a row share a scale, and are -8 to 7 times that.

The scale is llama.cpp's unless another is chosen: the element of largest magnitude becomes -8. It is stored as float16.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from t2n_core.nnef.dat import BLOCK_ELEMENTS
from t2n_core.nnef.graph import FLOAT32
from t2n_core.nnef.options.weight_choice import Scales
from t2n_core.op.stored.chunks import pieces
from t2n_core.op.stored.int8 import fitting_scales
from t2n_core.torch_graph.graph.ir import StoredWeight
from t2n_core.torch_graph.tensors_on_disk import tensor_on_disk

LOWEST, HIGHEST = -8, 7
LARGEST = -LOWEST * float(torch.finfo(torch.float16).max)
_ERROR = 2.0**-5
"""The largest relative error of a row from the rounding of its scales; the 4 bits' error is about twice as large."""


def as_blocks(tensor: torch.Tensor, scales: Scales | None = None) -> StoredWeight:
    """Return a weight with the values that the engine reads out of the blocks, in the dtype of the tensor.

    For a float16 tensor the scales have 8 significant bits, so that each product with an integer is exact in float16,
    and PyTorch can hold the values that the engine computes with.

    Raises InputError for scales that are not one per block, or that float16 cannot represent.
    """
    values = tensor_on_disk(tensor.shape, tensor.dtype)
    per_row = tensor[0].numel() // BLOCK_ELEMENTS
    all_scales = torch.empty(len(tensor), per_row, dtype=torch.float32)
    for row_slice, part in pieces(tensor):
        blocks = part.to(torch.float32).reshape(-1, BLOCK_ELEMENTS)

        def rounded_scales(rows: torch.Tensor, lowest: int, highest: int) -> torch.Tensor:
            row_scales = fitting_scales(scales, rows, lowest, highest).half()
            if tensor.dtype == torch.float16:
                row_scales = (row_scales.view(torch.int16) & -8).view(torch.float16)
            return row_scales.float()

        block_scales = fitting_scales(rounded_scales, blocks, LOWEST, HIGHEST)[:, None]
        steps = torch.floor(blocks / block_scales + 0.5).clamp(LOWEST, HIGHEST)
        values[row_slice] = (steps * block_scales).reshape(part.shape)
        all_scales[row_slice] = block_scales.reshape(-1, per_row)
    return StoredWeight("q4_0", values, all_scales)


def loss(tensor: torch.Tensor) -> str:
    """Return why blocks with the usual scales cannot represent a weight; an empty text if they can.

    They can if no element is beyond the largest scale, and no row (along axis 0) gets a scale that is too small for
    float16: the error by that is at most 2^-5 of the row, both as root mean squares.
    """
    beyond = lost = 0
    for _, rows in pieces(tensor):
        blocks = rows.reshape(len(rows), -1, BLOCK_ELEMENTS).double()
        beyond += int((blocks.abs() > LARGEST).sum())
        scales = blocks.abs().amax(2) / -LOWEST
        off = (scales.half().double() - scales) / torch.where(scales == 0, 1.0, scales)
        squares = blocks.square().sum(2)
        lost += int(((off.square() * squares).sum(1) > _ERROR**2 * squares.sum(1)).sum())
    if beyond:
        return f"{beyond} value{'s' if beyond > 1 else ''} beyond {LARGEST:.6g}"
    return f"{lost} of {len(tensor)} rows too small for scales" if lost else ""


@dataclass(frozen=True, slots=True, eq=False)
class BlockWeight:
    """A weight as the source of a variable; the engine sees float32, the archive holds blocks."""

    stored: StoredWeight
    shape: tuple[int, ...]
    """The shape in the file, in which blocks run along all axes but the first."""
    in_blocks: bool = True

    @property
    def dtype(self) -> np.dtype[Any]:
        return FLOAT32

    def chunks(self) -> Iterator[memoryview]:
        assert self.stored.scales is not None
        for row_slice, part in pieces(self.stored.values):
            yield _pack(part, self.stored.scales[row_slice]).data


def _pack(part: torch.Tensor, scales: torch.Tensor) -> NDArray[np.uint8]:
    blocks = part.to(torch.float32).reshape(-1, BLOCK_ELEMENTS)
    steps = torch.round(blocks / scales.reshape(-1, 1)) - LOWEST
    integers = steps.to(torch.uint8).cpu().numpy()
    nibbles = integers[:, :16] | (integers[:, 16:] << 4)
    heads = scales.reshape(-1).numpy().astype("<f2").view(np.uint8).reshape(-1, 2)
    return np.concatenate([heads, nibbles], axis=1).reshape(-1)
