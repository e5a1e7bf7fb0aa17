"""Orthogonal factors by Householder reflections, in the order and with the signs of LAPACK's geqrf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from t2n_core.torch_graph.simplify.decompositions import decomposition, is_unrolled
from t2n_core.torch_graph.stand_ins.loops import least, loop

_Step: TypeAlias = "Tensor | tuple[Tensor, Tensor | None]"
"""One step of a factor: the last row if no reflection follows, else a finished column and the row right of its head."""


def factor(a: Tensor) -> tuple[Tensor, Tensor]:
    """(R above the reflections' vectors, their scales)."""
    rows, columns = a.shape[-2:]
    if not is_unrolled(rows, columns):
        packed, found = loop("reflections", a)
        return packed, found
    done: list[_Step] = []
    scales = []
    for k in range(min(rows, columns)):
        head, tail = a[..., :1, :1], a[..., 1:, :1]
        if k == rows - 1:
            scales.append(torch.zeros_like(head[..., 0]))
            done.append(F.pad(a, (k, 0, 0, 0)))  # the last row is as it is
            break
        size = tail.square().sum(-2, keepdim=True)
        length = (head.square() + size).sqrt()
        new = torch.where(size == 0, head, torch.where(head < 0, length, -length))
        # an exact zero below the diagonal means no reflection; its divisions are never used
        scale = torch.where(size == 0, torch.zeros_like(head), (new - head) / new)
        vector = torch.where(size == 0, torch.zeros_like(tail), tail / (head - new))
        whole = torch.cat([torch.ones_like(head), vector], -2)
        column = torch.cat([new, vector], -2)
        scales.append(scale[..., 0])
        if k < columns - 1:
            rest = a[..., :, 1:]
            rest = rest - scale * whole * (whole * rest).sum(-2, keepdim=True)
            done.append((column, rest[..., :1, :]))
            a = rest[..., 1:, :]
        else:
            done.append((column, None))
    return _assembled(done, rows, columns), torch.cat(scales, -1)


def _assembled(done: Sequence[_Step], rows: int, columns: int) -> Tensor:
    """Return the packed matrix: column k below its diagonal from step k, row k right of it too."""
    result = None
    for k, step in enumerate(done):
        if isinstance(step, Tensor):
            part = F.pad(step, (0, 0, k, 0))
        else:
            column, row = step
            part = F.pad(column, (k, columns - k - 1, k, 0))
            if row is not None:
                part = part + F.pad(row, (k + 1, 0, k, rows - k - 1))
        result = part if result is None else result + part
    assert result is not None
    return result


def vectors(packed: Tensor, count: int) -> list[Tensor]:
    """Return the vector of each reflection, as a column."""
    rows = packed.shape[-2]
    below = torch.arange(rows).unsqueeze(-1)
    return [torch.where(below > k, packed[..., :, k : k + 1], (below == k).to(packed.dtype)) for k in range(count)]


def reflect(packed: Tensor, scales: Tensor, other: Tensor, *, transpose: bool) -> Tensor:
    """Q other, or Qᵀ other."""
    count = scales.shape[-1]
    if not is_unrolled(count):
        found: Tensor = loop("reflect", packed, scales, other, transpose)
        return found
    columns = list(enumerate(vectors(packed, count)))
    for k, vector in columns if transpose else reversed(columns):
        scale = scales[..., k : k + 1].unsqueeze(-1)
        other = other - scale * vector * (vector * other).sum(-2, keepdim=True)
    return other


@decomposition("aten::geqrf")
def geqrf(self: Tensor) -> tuple[Tensor, Tensor]:
    return factor(self)


@decomposition("aten::linalg_qr")
def linalg_qr(A: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    rows, columns = A.shape[-2:]
    packed, scales = factor(A)
    width = rows if mode == "complete" else least(rows, columns)
    if mode == "r":
        return A.new_empty(0), packed[..., :width, :].triu()
    eye = torch.eye(rows, width, dtype=A.dtype).expand(*A.shape[:-2], rows, width)
    return reflect(packed, scales, eye, transpose=False), packed[..., :width, :].triu()


@decomposition("aten::linalg_householder_product")
def linalg_householder_product(input: Tensor, tau: Tensor) -> Tensor:
    eye = torch.eye(*input.shape[-2:], dtype=input.dtype).expand(input.shape)
    return reflect(input, tau, eye, transpose=False)


@decomposition("aten::ormqr")
def ormqr(self: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    if left:
        return reflect(self, input2, input3, transpose=transpose)
    return reflect(self, input2, input3.mT, transpose=not transpose).mT
