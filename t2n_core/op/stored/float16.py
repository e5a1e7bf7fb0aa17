"""Weights as float16."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from t2n_core.nnef.graph import FLOAT16
from t2n_core.op.stored.parts import pieces
from t2n_core.torch_graph.graph.ir import StoredWeight
from t2n_core.torch_graph.tensors_on_disk import tensor_on_disk

LARGEST = torch.finfo(torch.float16).max
_ERROR = 2.0**-11
"""The largest relative error of a number that float16 has in full precision."""


def as_float16(tensor: torch.Tensor) -> StoredWeight:
    """Return a weight with the numbers of float16, in its own dtype."""
    found = tensor_on_disk(tensor.shape, tensor.dtype)
    for place, part in pieces(tensor):
        found[place] = part.half()
    return StoredWeight("float16", found)


def loss(tensor: torch.Tensor) -> str:
    """Return why float16 cannot stand for a tensor; an empty text if it can.

    It can where no number is out of its range, and each row (along axis 0) is rounded as finely as normal numbers are:
    its error is at most 2^-11 of its size, both as root mean squares.
    """
    beyond = lost = 0
    for _, rows in pieces(tensor):
        part = rows.reshape(len(rows), -1)
        part = torch.where(part.isfinite(), part, 0.0)
        beyond += int((part.abs() > LARGEST).sum())
        error = (part.double() - part.half().double()).square().sum(1)
        lost += int((error > _ERROR**2 * part.double().square().sum(1)).sum())
    if beyond:
        return f"{beyond} numbers beyond {LARGEST:g}"
    return f"{lost} of {len(tensor)} rows too small for float16" if lost else ""


def is_exact(tensor: torch.Tensor) -> bool:
    """Return whether float16 holds all numbers without loss."""
    return all(bool(((part == part.half().to(part.dtype)) | part.isnan()).all()) for _, part in pieces(tensor))


@dataclass(frozen=True, slots=True, eq=False)
class Float16Weight:
    """Numbers of float32 as float16."""

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


__all__ = ["Float16Weight", "as_float16", "is_exact", "loss"]
