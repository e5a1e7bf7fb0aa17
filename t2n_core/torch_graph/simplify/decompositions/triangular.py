"""Cholesky factors and triangular systems, unrolled over the size of the matrix where that is small and known."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from t2n_core.torch_graph.simplify.decompositions import decomposition, is_unrolled
from t2n_core.torch_graph.stand_ins.loops import loop


def cholesky_factor(a: Tensor) -> tuple[Tensor, Tensor]:
    """(lower factor, pivots); reads the lower triangle only. A pivot that is not positive leaves NaN behind it."""
    if not is_unrolled(a.shape[-1]):
        factor: Tensor
        factor, found = loop("cholesky", a)
        return factor.tril(), found
    columns, pivots = [], []
    for j in range(a.shape[-1]):
        pivot = a[..., :1, :1]
        column = a[..., :, :1] * torch.rsqrt(pivot)
        columns.append(F.pad(column, (0, 0, j, 0)))
        pivots.append(pivot[..., 0, 0])
        below = column[..., 1:, :]
        a = a[..., 1:, 1:] - below * below.mT
    return torch.cat(columns, -1), torch.stack(pivots, -1)


def solve_lower(a: Tensor, b: Tensor, unit: bool) -> Tensor:
    """x with tril(a) x = b, row by row."""
    if not is_unrolled(a.shape[-1]):
        found: Tensor = loop("solve", a, b, False, unit)
        return found
    rows: list[Tensor] = []
    for i in range(a.shape[-1]):
        row = b[..., i : i + 1, :]
        if i:
            row = row - a[..., i : i + 1, :i] @ torch.cat(rows, -2)
        rows.append(row if unit else row / a[..., i : i + 1, i : i + 1])
    return torch.cat(rows, -2)


def solve_upper(a: Tensor, b: Tensor, unit: bool) -> Tensor:
    if not is_unrolled(a.shape[-1]):
        found: Tensor = loop("solve", a, b, True, unit)
        return found
    return solve_lower(a.flip((-2, -1)), b.flip(-2), unit).flip(-2)


def broadcast(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Return the two matrices broadcast to the same batch."""
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])  # type: ignore[no-untyped-call]
    return a.expand(*batch, *a.shape[-2:]), b.expand(*batch, *b.shape[-2:])


def solve_matrix(a: Tensor, b: Tensor, upper: bool, unit: bool = False) -> Tensor:
    """x with a x = b for a triangular a; batches broadcast."""
    a, b = broadcast(a, b)
    return solve_upper(a, b, unit) if upper else solve_lower(a, b, unit)


@decomposition("aten::cholesky")
def cholesky(self: Tensor, upper: bool = False) -> Tensor:
    return cholesky_factor(self.mT)[0].mT if upper else cholesky_factor(self)[0]


@decomposition("aten::linalg_cholesky_ex")
def linalg_cholesky_ex(self: Tensor, *, upper: bool = False, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    factor, pivots = cholesky_factor(self.mT if upper else self)
    broken = (~(pivots > 0)).to(torch.int32)
    info = torch.where(broken.amax(-1) > 0, broken.argmax(-1) + 1, 0).to(torch.int32)
    return (factor.mT if upper else factor), info


@decomposition("aten::linalg_solve_triangular")
def linalg_solve_triangular(
    self: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    if left:
        return solve_matrix(self, B, upper, unitriangular)
    return solve_matrix(self.mT, B.mT, not upper, unitriangular).mT


@decomposition("aten::triangular_solve")
def triangular_solve(
    self: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Tensor, Tensor]:
    coefficients = broadcast(self, A)[1].clone()
    solved = solve_matrix(A.mT if transpose else A, self, upper != transpose, unitriangular)
    return solved, coefficients


@decomposition("aten::cholesky_solve")
def cholesky_solve(self: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    lower = input2.mT if upper else input2
    return solve_matrix(lower.mT, solve_matrix(lower, self, upper=False), upper=True)


@decomposition("aten::cholesky_inverse")
def cholesky_inverse(self: Tensor, upper: bool = False) -> Tensor:
    eye = torch.eye(self.shape[-1], dtype=self.dtype).expand(self.shape)
    return cholesky_solve(eye, self, upper)
