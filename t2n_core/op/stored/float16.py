"""Weights as float16."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from t2n_core.nnef.graph import FLOAT16
from t2n_core.op.stored.chunks import pieces
from t2n_core.torch_graph.graph.ir import StoredWeight
from t2n_core.torch_graph.tensors_on_disk import tensor_on_disk

LARGEST = torch.finfo(torch.float16).max
_ERROR = 2.0**-11
"""The largest relative rounding error of a normal float16."""


def as_float16(tensor: torch.Tensor) -> StoredWeight:
    """Return a weight rounded to float16, in its own dtype."""
    rounded = tensor_on_disk(tensor.shape, tensor.dtype)
    for row_slice, part in pieces(tensor):
        rounded[row_slice] = part.half()
    return StoredWeight("float16", rounded)


def loss(tensor: torch.Tensor) -> str:
    """Return why float16 cannot represent a tensor; an empty text if it can.

    It can if no element is out of its range, and each row (along axis 0) is rounded as finely as normal floats are: its
    error is at most 2^-11 of its norm, both as root mean squares.
    """
    beyond = lost = 0
    for _, rows in pieces(tensor):
        part = rows.reshape(len(rows), -1)
        part = torch.where(part.isfinite(), part, 0.0)
        beyond += int((part.abs() > LARGEST).sum())
        error = (part.double() - part.half().double()).square().sum(1)
        lost += int((error > _ERROR**2 * part.double().square().sum(1)).sum())
    if beyond:
        return f"{beyond} value{'s' if beyond > 1 else ''} beyond {LARGEST:g}"
    return f"{lost} of {len(tensor)} rows too small for float16" if lost else ""


def is_exact(tensor: torch.Tensor) -> bool:
    """Return whether float16 represents all elements exactly."""
    return all(bool(((part == part.half().to(part.dtype)) | part.isnan()).all()) for _, part in pieces(tensor))


@dataclass(frozen=True, slots=True, eq=False)
class Float16Weight:
    """A float32 weight stored as float16."""

    tensor: torch.Tensor

    @property
    def dtype(self) -> np.dtype[Any]:
        return FLOAT16

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    def chunks(self) -> Iterator[memoryview]:
        for _, part in pieces(self.tensor):
            yield part.cpu().numpy().astype("<f2").reshape(-1).view(np.uint8).data
