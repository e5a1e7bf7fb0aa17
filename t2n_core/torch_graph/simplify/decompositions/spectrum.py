"""Singular values and eigenvalues by one-sided Jacobi rotations.

Vectors are not returned (None): their signs are arbitrary in LAPACK, and no other algorithm has the same.
"""

from __future__ import annotations

import torch
from torch import Tensor

from t2n_core.torch_graph.compat.private import statically_known_true
from t2n_core.torch_graph.custom_ops.factorisation_steps import least, loop
from t2n_core.torch_graph.simplify.decompositions import decomposition


def orthogonal_columns(a: Tensor, rows: int) -> Tensor:
    """Return `a` times a rotation that makes its columns orthogonal to each other in the first `rows` rows."""
    columns: Tensor = loop("orthogonal", a, rows)
    return columns


def singular_values(a: Tensor) -> Tensor:
    """Return the singular values in descending order."""
    a = a.mT if _is_wide(a) else a
    norms = orthogonal_columns(a, a.shape[-2]).square().sum(-2).sqrt()
    return norms.sort(-1, descending=True).values[..., : least(*a.shape[-2:])]


def _is_wide(a: Tensor) -> bool:
    """Return whether a matrix is known to have more columns than rows."""
    return statically_known_true(a.shape[-2] < a.shape[-1])


@decomposition("aten::_linalg_svd")
def _linalg_svd(
    A: Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None
) -> tuple[None, Tensor, None]:
    return None, singular_values(A), None


@decomposition("aten::_linalg_eigh")
def _linalg_eigh(A: Tensor, UPLO: str = "L", compute_v: bool = True) -> tuple[Tensor, None]:
    a = _symmetric(A, UPLO)
    # all eigenvalues of a + shift I are positive, so they are its singular values
    shift = a.square().sum((-2, -1), keepdim=True).sqrt()
    positive = a + shift * torch.eye(a.shape[-1], dtype=a.dtype)
    return singular_values(positive).flip(-1) - shift[..., 0], None


def _symmetric(a: Tensor, triangle: str) -> Tensor:
    a = a.mT if triangle.upper() == "U" else a
    return a.tril() + a.tril(-1).mT


@decomposition("aten::linalg_pinv.atol_rtol_tensor")
def linalg_pinv(
    self: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: bool = False
) -> Tensor:
    a = _symmetric(self, "L") if hermitian else self
    wide = _is_wide(a)
    a = a.mT if wide else a
    rows, columns = a.shape[-2:]
    eye = torch.eye(columns, dtype=a.dtype).expand(*a.shape[:-2], columns, columns)
    both = orthogonal_columns(torch.cat([a, eye], -2), rows)
    scaled, right = both[..., :rows, :], both[..., rows:, :]
    squares = scaled.square().sum(-2)
    cutoff = _cutoff(squares.amax(-1).sqrt(), atol, rtol, rows + columns - least(rows, columns)).unsqueeze(-1)
    weights = torch.where(squares.sqrt() > cutoff, 1 / squares, torch.zeros_like(squares))
    inverse = (right * weights.unsqueeze(-2)) @ scaled.mT
    return inverse.mT if wide else inverse


def _cutoff(largest: Tensor, atol: Tensor | None, rtol: Tensor | None, size: int) -> Tensor:
    usual = torch.finfo(largest.dtype).eps * size
    if rtol is None:
        relative = usual if atol is None else torch.where(atol > 0, torch.zeros_like(atol), usual)
    else:
        relative = rtol
    cutoff = largest * relative
    return cutoff if atol is None else torch.maximum(cutoff, atol)
