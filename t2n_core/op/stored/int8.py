"""Weights as int8: integers with one scale for each output channel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from t2n_core.errors import InputError
from t2n_core.nnef.options.weight_choice import Scales
from t2n_core.op.stored.chunks import pieces
from t2n_core.op.stored.scales import largest
from t2n_core.torch_graph.graph.ir import StoredWeight
from t2n_core.torch_graph.tensors_on_disk import tensor_on_disk

LARGEST = 127
"""-128 is not used: the range is symmetric."""
INT8 = np.dtype(np.int8)


def as_bytes(tensor: torch.Tensor, channels: tuple[int, ...], scales: Scales | None = None) -> StoredWeight:
    """Return a weight with one scale for each index of the axes `channels`. Raises InputError for invalid scales.

    The product of an integer and a scale is rounded once, in float32, here as in the engine.
    """
    order = [*channels, *(axis for axis in range(tensor.dim()) if axis not in channels)]
    turned = tensor.detach().permute(order)
    count = torch.Size(turned.shape[: len(channels)])
    of_rows = torch.empty(count, dtype=torch.float32)
    for row_slice, part in pieces(turned):
        rows = part.reshape(part.shape[: len(channels)].numel(), -1).to(torch.float32)
        of_rows[row_slice] = fitting_scales(scales, rows, -LARGEST, LARGEST).reshape(of_rows[row_slice].shape)
    shape = [tensor.shape[axis] if axis in channels else 1 for axis in range(tensor.dim())]
    channel_scales = of_rows.reshape(shape)
    values = tensor_on_disk(tensor.shape, tensor.dtype)
    for row_slice, part in pieces(tensor):
        scale = _of(channel_scales, row_slice)
        values[row_slice] = torch.round(part / scale).clamp(-LARGEST, LARGEST) * scale
    return StoredWeight("int8", values, channel_scales)


def fitting_scales(scales: Scales | None, rows: torch.Tensor, lowest: int, highest: int) -> torch.Tensor:
    """Return the scale of each row; 1 for rows of zeros. Raises InputError if they are not one finite scale per row."""
    row_scales = torch.as_tensor((scales or largest)(rows, lowest, highest)).detach().to(torch.float32)
    if row_scales.shape != (len(rows),):
        raise InputError(f"scales of {len(rows)} rows have shape {list(row_scales.shape)}, not [{len(rows)}]")
    if not bool(row_scales.isfinite().all()):
        raise InputError("a scale is not finite")
    return torch.where(row_scales == 0, 1.0, row_scales)


def _of(scales: torch.Tensor, row_slice: slice) -> torch.Tensor:
    """Return the scales of a slice of axis 0; all indices may share them."""
    return scales[row_slice] if scales.shape[0] > 1 else scales


@dataclass(frozen=True, slots=True, eq=False)
class ByteWeight:
    """The integers of a weight, as int8."""

    stored: StoredWeight

    @property
    def dtype(self) -> np.dtype[Any]:
        return INT8

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.stored.values.shape)

    def chunks(self) -> Iterator[memoryview]:
        scales = self.stored.scales
        assert scales is not None
        for row_slice, part in pieces(self.stored.values):
            integers = torch.round(part / _of(scales, row_slice)).to(torch.int8)
            yield integers.contiguous().cpu().numpy().reshape(-1).view(np.uint8).data
