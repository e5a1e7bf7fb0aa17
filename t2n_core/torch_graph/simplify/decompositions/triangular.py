"""Cholesky factors and triangular systems."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from t2n_core.torch_graph.custom_ops.factorisation_steps import loop
from t2n_core.torch_graph.simplify.decompositions import decomposition


def cholesky_factor(a: Tensor) -> tuple[Tensor, Tensor]:
    """Return (lower factor, pivots); reads the lower triangle only."""
    factor, pivots = loop("cholesky", a)
    return factor.tril(), pivots


def solve_triangle(a: Tensor, b: Tensor, upper: bool, unit: bool = False) -> Tensor:
    """Return x with a x = b for equal batches; the other triangle of `a` is not read."""
    solution: Tensor = loop("solve", a, b, upper, unit)
    return solution


def broadcast(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Return the two matrices broadcast to the same batch."""
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])  # type: ignore[no-untyped-call]
    return a.expand(*batch, *a.shape[-2:]), b.expand(*batch, *b.shape[-2:])


def solve_batch(solve: Callable[[Tensor, Tensor], Tensor], a: Tensor, b: Tensor) -> Tensor:
    """Return `solve(a, b)` for batches that broadcast; `solve` takes equal batches.

    Several right-hand sides of a single matrix are solved as columns of one, so that the matrix is not repeated.
    """
    is_single = all(isinstance(size, int) and size == 1 for size in a.shape[:-2])
    if not is_single or a.dim() > b.dim() or b.dim() == 2:
        return solve(*broadcast(a, b))
    rows = b.movedim(-2, 0)
    solution = solve(a.reshape(a.shape[-2:]), rows.reshape(b.shape[-2], -1))
    return solution.reshape(rows.shape).movedim(0, -2)


def solve_matrix(a: Tensor, b: Tensor, upper: bool, unit: bool = False) -> Tensor:
    """Return x with a x = b for a triangular a; batches broadcast."""
    return solve_batch(lambda a, b: solve_triangle(a, b, upper, unit), a, b)


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
